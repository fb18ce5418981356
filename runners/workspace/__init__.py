"""Tools that read and change the files of a workspace (S4). They import no Django and no app."""
