"""A token names any number of users that it may act for, instead of one."""

from django.db import migrations, models


def take_over(apps, schema_editor):
    Token = apps.get_model("decisions", "Token")
    for token in Token.objects.filter(user__isnull=False).select_related("user"):
        token.acts_for = [token.user.user_id]
        token.save(update_fields=["acts_for"])


def give_back(apps, schema_editor):
    Token, User = apps.get_model("decisions", "Token"), apps.get_model("decisions", "User")
    for token in Token.objects.exclude(acts_for=[]):
        token.user = User.objects.filter(
            workspace_id=token.workspace_id, user_id=token.acts_for[0]
        ).first()
        token.save(update_fields=["user"])
    if schema_editor.connection.vendor == "postgresql":  # it alters no table with checks pending
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


class Migration(migrations.Migration):
    dependencies = [("decisions", "0005_decisions")]
    operations = [
        migrations.AddField(
            model_name="token", name="acts_for", field=models.JSONField(default=list)
        ),
        migrations.RunPython(take_over, give_back),
        migrations.RemoveField(model_name="token", name="user"),
    ]
