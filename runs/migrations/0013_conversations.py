"""Tasks: conversations, their messages, logs and tickets; a run may name its task."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0012_runs_that_entered"),
    ]

    operations = [
        migrations.CreateModel(
            name="Task",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("tenant_id", models.CharField(max_length=64)),
                ("workspace_id", models.CharField(max_length=64)),
                ("principal_id", models.CharField(max_length=80)),
                ("user_id", models.CharField(max_length=128, null=True)),
                ("trust", models.CharField(max_length=8)),
                ("title", models.CharField(max_length=200)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("created", "Created"),
                            ("running", "Running"),
                            ("ongoing", "Ongoing"),
                            ("takeover", "Takeover"),
                            ("completed", "Completed"),
                            ("error", "Error"),
                        ],
                        default="created",
                        max_length=16,
                    ),
                ),
                ("target_id", models.CharField(max_length=128, null=True)),
                ("selected_client_id", models.CharField(max_length=128, null=True)),
                ("key", models.CharField(max_length=255, null=True)),
                ("used_browser", models.BooleanField(default=False)),
                ("last_seq", models.IntegerField(default=0)),
                ("messages_count", models.IntegerField(default=0)),
                ("taken_over_at", models.DateTimeField(null=True)),
                ("times_given_back", models.IntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="TaskEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.IntegerField()),
                ("type", models.CharField(max_length=32)),
                ("at", models.DateTimeField()),
                ("data", models.JSONField(default=dict)),
            ],
        ),
        migrations.CreateModel(
            name="TaskMessage",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("number", models.IntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[("user", "User"), ("assistant", "Assistant"), ("tool", "Tool")],
                        max_length=16,
                    ),
                ),
                ("content", models.TextField()),
                ("run_id", models.CharField(max_length=64, null=True)),
                ("principal_id", models.CharField(max_length=80, null=True)),
                ("key", models.CharField(max_length=255, null=True)),
                ("digest", models.CharField(default="", max_length=64)),
                ("at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="TaskTicket",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("principal", models.JSONField()),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name="run",
            name="task_id",
            field=models.CharField(max_length=64, null=True),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("task_id__isnull", False)),
                fields=["task_id", "created_at", "id"],
                name="run_of_task",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["workspace_id", "-created_at", "-id"], name="task_listed"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["-created_at", "-id"], name="task_newest_of_all"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["updated_at"], name="task_to_delete"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("taken_over_at__isnull", False)),
                fields=["taken_over_at"],
                name="task_taken_over",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        ["created", "running", "ongoing", "takeover", "completed", "error"],
                    )
                ),
                name="task_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "takeover"), ("taken_over_at__isnull", False)),
                    models.Q(
                        models.Q(("status", "takeover"), _negated=True),
                        ("taken_over_at__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="task_takeover_has_its_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.UniqueConstraint(
                fields=("principal_id", "key"), name="task_key_per_principal"
            ),
        ),
        migrations.AddField(
            model_name="taskevent",
            name="task",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="events",
                to="runs.task",
            ),
        ),
        migrations.AddField(
            model_name="taskmessage",
            name="task",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to="runs.task",
            ),
        ),
        migrations.AddField(
            model_name="taskticket",
            name="task",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="tickets", to="runs.task"
            ),
        ),
        migrations.AddConstraint(
            model_name="taskevent",
            constraint=models.UniqueConstraint(
                fields=("task", "seq"), name="task_event_seq_per_task"
            ),
        ),
        migrations.AddConstraint(
            model_name="taskmessage",
            constraint=models.UniqueConstraint(
                fields=("task", "number"), name="message_number_per_task"
            ),
        ),
        migrations.AddConstraint(
            model_name="taskmessage",
            constraint=models.UniqueConstraint(
                fields=("task", "principal_id", "key"), name="message_key_per_task"
            ),
        ),
        migrations.AddIndex(
            model_name="taskticket",
            index=models.Index(fields=["expires_at"], name="task_ticket_over"),
        ),
    ]
