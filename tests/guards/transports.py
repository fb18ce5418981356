"""Guards of artifacts, MCP, the REST API and the WebSockets."""

from __future__ import annotations

from tests.guards import own_browser, paired_browsers
from tests.guards.guard import Guard, Patch

UPLOADS = "tests/artifacts/api/test_uploads.py"
DOWNLOADS = "tests/artifacts/api/test_downloads.py"
ARTIFACTS = "tests/artifacts/storage/test_artifacts.py"
POOLING = "tests/decisions/infra/test_transaction_pooling.py"
S3 = "tests/artifacts/storage/test_s3.py"
ADMIN_ARTIFACTS = "tests/artifacts/admin/test_artifact_pages.py"
MCP_HTTP = "tests/contract/test_mcp_http.py"
MCP_ENDED_CALLS = "tests/contract/test_mcp_http_disconnects.py"
MCP_RESOURCES = "tests/contract/test_mcp_resources.py"
MCP_ANSWERS = "tests/contract/test_mcp_server_failures.py"
MCP_TARGETS = "tests/contract/test_mcp_targets.py"
MCP_BROWSER = "tests/contract/test_mcp_browser.py"
MCP_BUDGET = "tests/contract/test_answer_size_limits.py"
MCP_PROCESS = "tests/mcp_server/stdio/test_process.py"
ACCESS = "tests/decisions/api/test_access.py"
LIMITS = "tests/config/test_request_limits.py"
REST_ROWS = (
    "tests/contract/test_rest_bad_inputs.py::test_a_call_that_only_http_can_express_gets_its_code"
)
OBJECT_ROWS = (
    "tests/contract/test_rest_bad_inputs.py::test_a_call_about_an_existing_object_gets_its_code"
)
BAD_BODY = "tests/contract/test_mcp_http.py::test_a_bad_body_gets_a_json_rpc_error"
EVENTS = "tests/runs/api/test_events.py"
TASK_SOCKET = "tests/contract/test_task_socket.py"
TASK_READERS = "tests/contract/test_task_event_readers.py"
LIVE_SOCKET = "tests/contract/test_live_socket.py"

_UPLOAD_GUARDS = (
    Guard(
        "upload-link-bytes",
        "A presigned link of an upload accepts the announced bytes only",
        (
            Patch("artifacts/storage/s3.py", old=', "ChecksumSHA256": checksum}', new="}"),
            Patch(
                "artifacts/storage/s3.py",
                old='            "x-amz-checksum-sha256": checksum,\n',
                new="",
            ),
        ),
        failing_test="tests/artifacts/storage/test_presigned_links.py::"
        "test_an_upload_link_accepts_no_other_bytes_and_no_other_headers",
    ),
    Guard(
        "download-link-type",
        "A presigned link of a download returns no page that a browser would run",
        Patch(
            "artifacts/storage/s3.py",
            old='            "ResponseContentType": "application/octet-stream",\n',
            new="",
        ),
        failing_test="tests/artifacts/storage/test_presigned_links.py::"
        "test_a_download_link_returns_the_object_as_a_file_to_save",
    ),
    Guard(
        "mcp-profile-scope",
        "The runtime's profile needs the scope runs:read over MCP too",
        Patch(
            "runs/queries/runs.py",
            old='''limits and the caller's trust level (S0 §4.5)."""
    principal.require("runs:read")
''',
            new='''limits and the caller's trust level (S0 §4.5)."""
''',
        ),
        failing_test="tests/contract/test_access_grid.py::"
        "test_each_mcp_tool_answers_each_caller_as_the_table_says",
    ),
    Guard(
        "upload-workspace",
        "A caller cannot complete an upload of another workspace",
        Patch(
            "artifacts/uploads.py",
            old="filter(id=upload_id, workspace_id=principal.workspace_id)",
            new="filter(id=upload_id)",
        ),
        failing_test=f"{UPLOADS}::test_an_upload_of_another_workspace_is_not_found",
    ),
    Guard(
        "upload-hash",
        "Bytes whose SHA-256 is not the announced one do not become an artifact",
        Patch(
            "artifacts/uploads.py",
            old="found == upload.size_bytes and _sha256_of(staged) == upload.sha256",
            new="found == upload.size_bytes",
        ),
        failing_test=f"{UPLOADS}::"
        "test_bytes_that_differ_from_the_announcement_are_refused_and_can_be_resent"
        "[files-other bytes 16!!]",
    ),
    Guard(
        "upload-size",
        "Bytes whose number is not the announced one do not become an artifact",
        Patch(
            "artifacts/uploads.py",
            old="if found == upload.size_bytes and ",
            new="if ",
        ),
        failing_test=f"{UPLOADS}::test_bytes_of_another_size_do_not_become_an_artifact[their hash]",
    ),
    Guard(
        "upload-body-length",
        "The upload route stores no body that is shorter or longer than announced",
        Patch("artifacts/uploads.py", old="        if left:\n", new="        if False:\n"),
        failing_test=f"{UPLOADS}::"
        "test_the_upload_route_accepts_no_other_length_and_stores_nothing_of_it"
        r"[id,street\n1,Way]",
    ),
    Guard(
        "upload-media-type",
        "The upload route accepts only the announced media type",
        Patch("artifacts/uploads.py", old="if mime_type != upload.mime_type:", new="if False:"),
        failing_test=f"{UPLOADS}::test_the_upload_route_accepts_no_other_content_type",
    ),
    Guard(
        "upload-complete-is-final",
        "The upload route accepts no bytes for an upload that is complete",
        Patch(
            "artifacts/uploads.py",
            old="""    if upload.artifact_id is not None:
        raise Conflict(f"The upload {upload.id} is complete already.")
""",
            new="",
        ),
        failing_test=f"{UPLOADS}::test_a_completed_upload_accepts_no_more_bytes",
    ),
    Guard(
        "upload-one-artifact",
        "Concurrent completions of an upload create one artifact",
        Patch(
            "artifacts/uploads.py",
            old="filter(id=upload.id, artifact_id__isnull=True)",
            new="filter(id=upload.id)",
        ),
        failing_test=f"{UPLOADS}::test_completions_that_verify_at_the_same_time_create_one_artifact",
    ),
    Guard(
        "upload-expiry",
        "An expired upload cannot be completed",
        Patch(
            "artifacts/uploads.py",
            old="if upload.artifact_id is None and upload.expires_at <= datetime.now(UTC):",
            new="if False:",
        ),
        failing_test=f"{UPLOADS}::"
        "test_an_abandoned_upload_is_deleted_with_its_bytes_and_an_active_one_is_not[files]",
    ),
    Guard(
        "upload-announced-size",
        "An upload over UPLOAD_MAX_BYTES cannot be announced",
        Patch("artifacts/uploads.py", old="if size_bytes > most:", new="if False:"),
        failing_test=f"{UPLOADS}::test_an_invalid_announcement_is_refused[{{'sizeBytes': 1001}}]",
    ),
    Guard(
        "upload-sha256-pattern",
        "An announced SHA-256 has 64 lower-case hex digits, because it names the stored file",
        Patch(
            "artifacts/api/contract.py",
            old="""{"type": "string", "pattern": "^[0-9a-f]{64}$"}""",
            new="""{"type": "string"}""",
        ),
        failing_test=f"{UPLOADS}::test_an_invalid_announcement_is_refused[{{'sha256': '{'A' * 64}'}}]",
    ),
    Guard(
        "upload-media-type-pattern",
        "An announced media type has no line break",
        Patch(
            "artifacts/api/contract.py",
            old='"pattern": r"^[A-Za-z0-9.+_-]+/[A-Za-z0-9.+_-]+(; ?charset=[A-Za-z0-9_-]+)?$",',
            new="",
        ),
        failing_test=f"{UPLOADS}::test_an_invalid_announcement_is_refused"
        f"[{{'mimeType': 'text/html\\\\r\\\\nX: y'}}]",
    ),
    Guard(
        "upload-open-limit",
        "A workspace has at most OPEN_MAX incomplete uploads",
        Patch(
            "artifacts/uploads.py",
            old="""if len(open_uploads.values("id")[:OPEN_MAX]) >= OPEN_MAX:""",
            new="if False:",
        ),
        failing_test=f"{UPLOADS}::test_a_workspace_has_a_limit_of_open_uploads",
    ),
    Guard(
        "upload-retention",
        "Only uploads that expired an hour ago are deleted",
        Patch(
            "artifacts/uploads.py",
            old="filter(expires_at__lte=datetime.now(UTC) - TIME_TO_SEND)",
            new="all()",
        ),
        failing_test=f"{UPLOADS}::"
        "test_an_abandoned_upload_is_deleted_with_its_bytes_and_an_active_one_is_not[files]",
    ),
    Guard(
        "upload-ticket-signature",
        "An upload ticket that this server did not sign is refused",
        Patch(
            "artifacts/storage/staging.py",
            old="""if not claims.isascii() or not mac_matches("upload", claims.encode(), proof):""",
            new="if not claims:",
        ),
        failing_test=f"{UPLOADS}::test_an_altered_or_expired_ticket_is_refused[proof]",
    ),
    Guard(
        "upload-ticket-expiry",
        "An expired upload ticket is refused",
        Patch(
            "artifacts/storage/staging.py",
            old="if int(expires) <= datetime.now(UTC).timestamp():",
            new="if False:",
        ),
        failing_test=f"{UPLOADS}::test_an_altered_or_expired_ticket_is_refused[too late]",
    ),
)

_S3_GUARDS = (
    Guard(
        "s3-upload-length",
        "A presigned upload URL accepts only the announced number of bytes",
        Patch("artifacts/storage/s3.py", old=""""ContentLength": size_bytes, """, new=""),
        failing_test=f"{UPLOADS}::test_a_presigned_url_binds_size_type_and_hash_and_contains_no_key",
    ),
    Guard(
        "s3-upload-hash",
        "A presigned upload URL accepts only bytes with the announced SHA-256",
        Patch("artifacts/storage/s3.py", old=""", "ChecksumSHA256": checksum""", new=""),
        failing_test=f"{UPLOADS}::test_a_presigned_url_binds_size_type_and_hash_and_contains_no_key",
    ),
    Guard(
        "s3-upload-copy",
        "Bytes sent to the bucket during a completion do not become the artifact",
        Patch(
            "artifacts/storage/s3.py",
            old="""        copy = f"{name}.{secrets.token_hex(8)}"
        self._copy(name, copy)
        return self._open(copy)
""",
            new="        return self._open(name)\n",
        ),
        failing_test=f"{UPLOADS}::test_bytes_that_change_during_completion_do_not_become_the_artifact",
    ),
    Guard(
        "s3-download-type",
        "A download from the bucket is never rendered as a page",
        Patch(
            "artifacts/storage/s3.py",
            old="""            "ResponseContentType": "application/octet-stream",
""",
            new="",
        ),
        failing_test=f"{UPLOADS}::test_a_large_download_is_redirected_to_the_bucket_as_an_attachment",
    ),
    Guard(
        "s3-download-disposition",
        "A download from the bucket is an attachment",
        Patch(
            "artifacts/storage/s3.py",
            old="""            "ResponseContentDisposition": disposition,
""",
            new="",
        ),
        failing_test=f"{UPLOADS}::test_a_large_download_is_redirected_to_the_bucket_as_an_attachment",
    ),
    Guard(
        "s3-one-version",
        "A file in the bucket that is replaced while it is read is not mixed of two versions",
        Patch(
            "artifacts/storage/s3.py",
            old="                    IfMatch=self._etag,\n",
            new="",
        ),
        failing_test=f"{S3}::test_an_object_that_is_replaced_while_it_is_read_is_an_error",
    ),
    Guard(
        "s3-collector-lock",
        "A writer waits while the collector deletes the same bytes from the bucket",
        Patch(
            "artifacts/storage/s3.py",
            old="with blob_lock(name, shared=False):",
            new="with contextlib.nullcontext():",
        ),
        failing_test=f"{S3}::test_a_writer_waits_for_a_collector_and_then_uploads_again",
    ),
    Guard(
        "s3-address-without-credentials",
        "The address of a bucket contains no credentials",
        Patch("config/home.py", old="if parts.username or parts.password or not", new="if not"),
        failing_test=f"{S3}::test_an_address_with_credentials_or_without_a_bucket_is_refused"
        "[s3://key:secret@bucket/x]",
    ),
)

_ARTIFACT_GUARDS = (
    Guard(
        "artifact-workspace",
        "A caller cannot read an artifact of another workspace",
        Patch(
            "artifacts/selectors.py",
            old="filter(id=artifact_id, workspace_id=principal.workspace_id)",
            new="filter(id=artifact_id)",
        ),
        failing_test=f"{DOWNLOADS}::test_an_unreadable_artifact_answers_the_reason[/content]",
    ),
    Guard(
        "artifact-list-workspace",
        "A caller cannot list the artifacts of another workspace's run",
        Patch(
            "artifacts/selectors.py",
            old="filter(run_id=run_id, workspace_id=principal.workspace_id)",
            new="filter(run_id=run_id)",
        ),
        failing_test=f"{ARTIFACTS}::test_a_foreign_artifact_reads_as_missing",
    ),
    Guard(
        "artifact-briefs-workspace",
        "The first artifacts of runs are those of the caller's workspace only",
        Patch(
            "artifacts/selectors.py",
            old="run_id__in=run_ids, workspace_id=principal.workspace_id, expired_at__isnull=True",
            new="run_id__in=run_ids, expired_at__isnull=True",
        ),
        failing_test=f"{ARTIFACTS}::test_a_foreign_artifact_reads_as_missing",
    ),
    Guard(
        "artifact-of-own-run",
        "A step reads only artifacts that its own run stored",
        Patch(
            "artifacts/selectors.py",
            old="filter(id=artifact_id, run_id=run_id)",
            new="filter(id=artifact_id)",
        ),
        failing_test=f"{ARTIFACTS}::test_a_step_reads_only_artifacts_of_its_own_run",
    ),
    Guard(
        "artifact-scope",
        "Reading an artifact needs the scope artifacts:read on every transport",
        Patch(
            "artifacts/selectors.py",
            old="""    principal.require("artifacts:read")
    row = Artifact""",
            new="    row = Artifact",
        ),
        failing_test=f"{ARTIFACTS}::test_without_the_scope_nothing_is_read",
    ),
    Guard(
        "artifact-tombstone",
        "An artifact that was turned into a tombstone cannot be read, even if its bytes remain",
        Patch(
            "artifacts/selectors.py",
            old="return row.expired_at is not None or (",
            new="return (",
        ),
        failing_test=f"{DOWNLOADS}::test_an_unreadable_artifact_answers_the_reason[/content]",
    ),
    Guard(
        "artifact-time-to-live",
        "An artifact past its time to live cannot be read, also before the scheduler deletes it",
        Patch(
            "artifacts/selectors.py",
            old="row.expires_at is not None and row.expires_at <= datetime.now(UTC)",
            new="False",
        ),
        failing_test=f"{DOWNLOADS}::test_an_artifact_past_its_time_to_live_is_expired_before_its_deletion",
    ),
    Guard(
        "artifact-expires-when-due",
        "Only artifacts past their time to live are turned into tombstones",
        Patch(
            "artifacts/services.py",
            old="filter(expires_at__lte=datetime.now(UTC), expired_at__isnull=True)",
            new="filter(expired_at__isnull=True)",
        ),
        failing_test=f"{ARTIFACTS}::test_an_artifact_of_an_active_run_does_not_expire",
    ),
    Guard(
        "artifact-expires-once",
        "Concurrent schedulers write one tombstone and one audit row for an artifact",
        Patch(
            "artifacts/services.py",
            old="filter(id=row.id, expired_at__isnull=True).update(expired_at=now)",
            new="filter(id=row.id).update(expired_at=now)",
        ),
        failing_test=f"{ARTIFACTS}::test_two_concurrent_expiries_write_one_tombstone_and_one_audit_row",
    ),
    Guard(
        "artifact-name-storable",
        "A name with a NUL character is stored with a replacement, because PostgreSQL refuses it",
        Patch(
            "artifacts/services.py",
            old="storable_text(name)[:255]",
            new="name[:255]",
        ),
        failing_test=f"{ARTIFACTS}::test_any_name_can_be_stored[a\\x00b]",
    ),
    Guard(
        "artifact-name-length",
        "A name longer than its column is cut",
        Patch("artifacts/services.py", old="storable_text(name)[:255]", new="storable_text(name)"),
        failing_test=f"{ARTIFACTS}::test_any_name_can_be_stored[name2]",
    ),
    Guard(
        "blob-size",
        "Truncated bytes are reported as lost and never returned",
        Patch("artifacts/storage/blobs.py", old="if file.size != size_bytes:", new="if False:"),
        failing_test=f"{ARTIFACTS}::test_bytes_that_are_lost_or_damaged_read_as_not_found_and_are_logged"
        "[cut short]",
    ),
    Guard(
        "blob-repair",
        "Storing bytes again replaces a truncated file instead of relying on it",
        Patch(
            "artifacts/storage/files.py",
            old="return path.stat().st_size == size_bytes",
            new="return True",
        ),
        failing_test=f"{ARTIFACTS}::test_storing_bytes_again_repairs_a_truncated_blob",
    ),
    Guard(
        "blob-draft",
        "A write that fails leaves no partial file",
        Patch(
            "artifacts/storage/files.py",
            old="            Path(draft).unlink(missing_ok=True)\n",
            new="",
        ),
        failing_test=f"{ARTIFACTS}::test_a_write_that_fails_leaves_no_draft",
    ),
    Guard(
        "blob-touch",
        "The collector keeps bytes that a writer found stored and is about to refer to",
        Patch("artifacts/storage/files.py", old="            os.utime(path)\n", new=""),
        failing_test=f"{ARTIFACTS}::test_a_writer_that_arrives_while_the_collector_decides_keeps_its_bytes"
        "[before]",
    ),
    Guard(
        "collector-checks-age-again",
        "The collector checks the age of a file again at the moment of its deletion",
        Patch(
            "artifacts/storage/files.py",
            old="if aside.stat().st_mtime < before.timestamp():",
            new="if True:",
        ),
        failing_test=f"{ARTIFACTS}::test_a_writer_that_arrives_while_the_collector_decides_keeps_its_bytes"
        "[before]",
    ),
    Guard(
        "collector-grace-period",
        "The collector deletes no recent file, whose row may not be committed yet",
        (
            Patch(
                "artifacts/storage/files.py",
                old="if path.stat().st_mtime < before.timestamp():",
                new="if True:",
            ),
            Patch(
                "artifacts/storage/files.py",
                old="if aside.stat().st_mtime < before.timestamp():",
                new="if True:",
            ),
        ),
        failing_test=f"{ARTIFACTS}::test_old_bytes_without_a_reference_are_deleted_and_young_ones_remain",
    ),
    Guard(
        "collector-references",
        "The collector deletes no bytes that an artifact refers to",
        Patch(
            "artifacts/services.py",
            old="""{blob_path(sha256) for sha256 in rows.values_list("sha256", flat=True)}""",
            new="set[str]()",
        ),
        failing_test=f"{ARTIFACTS}::"
        "test_an_expired_artifact_is_a_tombstone_and_another_with_its_bytes_remains",
    ),
    Guard(
        "collector-open-uploads",
        "The collector deletes no bytes of an upload that can still be completed",
        Patch("artifacts/services.py", old="        used |= open_upload_names()\n", new=""),
        failing_test=f"{UPLOADS}::"
        "test_an_abandoned_upload_is_deleted_with_its_bytes_and_an_active_one_is_not[files]",
    ),
)

_READING_GUARDS = (
    Guard(
        "chunk-size",
        "A chunk has at most 256 KiB",
        Patch("artifacts/api/contract.py", old=""""maximum": CHUNK_MAX, """, new=""),
        failing_test=f"{OBJECT_ROWS}[runs:242 INVALID_PARAMETER limit: over the largest chunk]",
    ),
    Guard(
        "chunk-offset",
        "A chunk cannot start beyond the end of the artifact",
        Patch("artifacts/chunks.py", old="if offset > row.size_bytes:", new="if False:"),
        failing_test=f"{DOWNLOADS}::test_an_offset_at_the_end_is_empty_and_one_past_it_is_refused",
    ),
    Guard(
        "chunk-starts-at-a-character",
        "A chunk of text cannot start inside a character",
        Patch(
            "artifacts/chunks.py",
            old="if _character_start(raw, before) != before:",
            new="if False:",
        ),
        failing_test=f"{ARTIFACTS}::test_an_offset_inside_a_character_is_rejected",
    ),
    Guard(
        "chunk-ends-at-a-character",
        "A chunk of text ends on a whole character",
        Patch(
            "artifacts/chunks.py",
            old="_character_start(raw, min(before + limit, len(raw)))",
            new="min(before + limit, len(raw))",
        ),
        failing_test=f"{DOWNLOADS}::test_text_is_returned_as_text_and_other_content_as_base64",
    ),
    Guard(
        "download-attachment",
        "A download is an attachment, so a browser does not open it as a page",
        Patch(
            "artifacts/api/downloads.py",
            old="content_disposition_header(True, safe_name(row.name))",
            new="content_disposition_header(False, safe_name(row.name))",
        ),
        failing_test=f"{DOWNLOADS}::test_a_stored_html_page_is_downloaded_and_never_rendered",
    ),
    Guard(
        "download-nosniff",
        "A browser does not guess the media type of a download",
        Patch(
            "artifacts/api/downloads.py",
            old="""        "X-Content-Type-Options": "nosniff",
""",
            new="",
        ),
        failing_test=f"{DOWNLOADS}::test_a_stored_html_page_is_downloaded_and_never_rendered",
    ),
    Guard(
        "download-sandbox",
        "A download that is opened as a page runs no script",
        Patch(
            "artifacts/api/downloads.py",
            old="""        "Content-Security-Policy": "default-src 'none'; sandbox",
""",
            new="",
        ),
        failing_test=f"{DOWNLOADS}::test_a_stored_html_page_is_downloaded_and_never_rendered",
    ),
    Guard(
        "download-not-embedded",
        "Pages of other origins cannot embed a download",
        Patch(
            "artifacts/api/downloads.py",
            old="""        "Cross-Origin-Resource-Policy": "same-origin",
""",
            new="",
        ),
        failing_test=f"{DOWNLOADS}::test_a_stored_html_page_is_downloaded_and_never_rendered",
    ),
    Guard(
        "download-not-cached",
        "Shared caches do not store a download",
        Patch(
            "artifacts/api/downloads.py",
            old="""        "Cache-Control": "private, no-cache",
""",
            new="",
        ),
        failing_test=f"{DOWNLOADS}::test_a_stored_html_page_is_downloaded_and_never_rendered",
    ),
    Guard(
        "download-file-name",
        "The file name of a download has no path, quote or line break",
        Patch(
            "artifacts/api/downloads.py",
            old="""_UNSAFE.sub("_", name).strip(". ")[:200]""",
            new="name[:200]",
        ),
        failing_test=f"{ADMIN_ARTIFACTS}::test_a_download_is_an_attachment_of_bytes",
    ),
    Guard(
        "download-media-type",
        "A stored media type that is not one is not sent as a header",
        Patch(
            "artifacts/api/downloads.py",
            old="if not _MEDIA_TYPE.fullmatch(stored):",
            new="if False:",
        ),
        failing_test=f"{DOWNLOADS}::test_a_stored_type_that_is_no_media_type_is_sent_as_bytes",
    ),
    Guard(
        "download-range-start",
        "A range outside of the artifact is refused",
        Patch("artifacts/api/downloads.py", old="if start >= stop:", new="if False:"),
        failing_test=f"{DOWNLOADS}::test_a_range_outside_the_content_is_refused_with_the_size",
    ),
    Guard(
        "download-range-end",
        "A range that is longer than the artifact ends with it",
        Patch(
            "artifacts/api/downloads.py",
            old="min(size_bytes, int(last) + 1 if last else size_bytes)",
            new="int(last) + 1 if last else size_bytes",
        ),
        failing_test=f"{DOWNLOADS}::test_a_range_is_sent_as_partial_content[10000-99999-10000-10240]",
    ),
    Guard(
        "admin-image-by-its-bytes",
        "The admin shows only raster images inline, whatever media type was stored",
        Patch(
            "artifacts/admin/responses.py",
            old="if mime_type is None or len(data) > INLINE_MAX:",
            new="if len(data) > INLINE_MAX:",
        ),
        failing_test=f"{ADMIN_ARTIFACTS}::test_no_other_type_is_displayed_inline_whatever_its_row_claims",
    ),
    Guard(
        "admin-download-as-bytes",
        "The admin downloads an artifact as bytes, whatever media type was stored",
        Patch(
            "artifacts/admin/responses.py",
            old="""        "Content-Type": "application/octet-stream",
""",
            new="",
        ),
        failing_test=f"{ADMIN_ARTIFACTS}::test_a_download_is_an_attachment_of_bytes",
    ),
    Guard(
        "admin-preview-size",
        "The admin reads at most 64 KiB of an artifact for its preview",
        Patch(
            "artifacts/admin/artifact_admin.py",
            old="file.read(PREVIEW_BYTES)",
            new="file.read()",
        ),
        failing_test=f"{ADMIN_ARTIFACTS}::test_a_long_text_is_previewed_up_to_its_limit",
    ),
    Guard(
        "admin-preview-escaped",
        "The admin escapes the text of an artifact",
        Patch(
            "artifacts/templates/admin/artifacts/page.html",
            old="{{ text }}",
            new="{{ text|safe }}",
        ),
        failing_test=f"{ADMIN_ARTIFACTS}::test_text_is_previewed_escaped",
    ),
)

_LOCAL_CALL = 'peer, host = request.META.get("REMOTE_ADDR", ""), request.get_host()'
_HOST_UNCHECKED = Patch(
    "decisions/api/drf.py",
    old=_LOCAL_CALL,
    new=_LOCAL_CALL.replace("request.get_host()", 'request.META.get("HTTP_HOST", "")'),
)

_MCP_ACCESS_GUARDS = (
    Guard(
        "mcp-host",
        "MCP over HTTP refuses a Host header of another server (DNS rebinding)",
        (
            Patch(
                "mcp_server/http/access.py",
                old="host = request.get_host()",
                new='host = request.META.get("HTTP_HOST", "")',
            ),
            _HOST_UNCHECKED,
        ),
        failing_test=f"{MCP_HTTP}::test_a_foreign_host_is_refused[/mcp]",
    ),
    Guard(
        "mcp-origin",
        "MCP over HTTP refuses a request of a page of another origin",
        Patch(
            "mcp_server/http/access.py",
            old="if origin is not None and not is_allowed_origin(origin, host):",
            new="if False:",
        ),
        failing_test=f"{MCP_HTTP}::test_a_foreign_origin_is_refused[https://evil.example-/mcp]",
    ),
    Guard(
        "mcp-origin-scheme",
        "A trusted origin is trusted only with its own scheme",
        Patch(
            "decisions/api/origins.py",
            old="parts.scheme == name.scheme and ",
            new="",
        ),
        failing_test=f"{MCP_HTTP}::test_the_sites_own_origin_and_trusted_origins_may_call",
    ),
    Guard(
        "mcp-token",
        "MCP over HTTP refuses a request without a token, with a challenge",
        Patch(
            "mcp_server/http/access.py",
            old="""    principal = authenticate_request(request)
    if principal is None:
        raise NotAuthenticated("This call needs a bearer token.")
    return principal
""",
            new="""    from decisions.identity.principals import local_principal

    return authenticate_request(request) or local_principal()
""",
        ),
        failing_test=f"{MCP_HTTP}::test_a_call_without_a_token_is_challenged[/mcp]",
    ),
    Guard(
        "mcp-rate",
        "MCP calls over HTTP count toward the caller's rate",
        Patch("mcp_server/http/access.py", old="    throttle_request(request)\n", new=""),
        failing_test=f"{MCP_HTTP}::test_calls_over_the_rate_are_refused",
    ),
    Guard(
        "mcp-batch-rate",
        "Each message of a batch counts toward the caller's rate",
        Patch(
            "mcp_server/http/batch.py",
            old="            throttle()\n        except",
            new="            pass\n        except",
        ),
        failing_test=f"{MCP_HTTP}::test_each_message_of_a_batch_counts_as_a_call",
    ),
    Guard(
        "mcp-batch-size",
        "A batch has at most 50 messages",
        Patch(
            "mcp_server/http/batch.py",
            old="if not 1 <= len(values) <= MAX_MESSAGES:",
            new="if not values:",
        ),
        failing_test=f"{MCP_HTTP}::test_an_empty_batch_and_a_batch_over_the_limit_are_refused[51 messages]",
    ),
    Guard(
        "mcp-batch-initialize",
        "A batch contains no initialize, whose session id could not be returned",
        Patch(
            "mcp_server/http/batch.py",
            old="""if isinstance(message, JSONRPCRequest) and message.method == "initialize":""",
            new="if False:",
        ),
        failing_test=f"{MCP_HTTP}::test_initialize_cannot_be_part_of_a_batch",
    ),
    Guard(
        "mcp-batch-version",
        "A batch is refused in protocol versions without batches",
        Patch(
            "mcp_server/http/batch.py",
            old="""return protocol_version in ("", BATCH_VERSION) and body""",
            new="return body",
        ),
        failing_test=f"{MCP_HTTP}::test_a_batch_is_refused_if_the_revision_has_none[2025-06-18]",
    ),
    Guard(
        "mcp-session-id-signature",
        "A session id that this server did not issue is refused",
        Patch(
            "mcp_server/http/session_ids.py",
            old=" and mac_matches(_PURPOSE, random_part.encode(), signature)",
            new="",
        ),
        failing_test="tests/contract/test_mcp_http_rows.py::test_a_row_gets_its_code"
        "[http:8 HTTP_404 a session id that this server did not create]",
    ),
    Guard(
        "mcp-cancel-own-token",
        "A cancellation with another token ends no call, even with the call's session id",
        Patch(
            "mcp_server/http/streamable.py",
            old="return (exchange.principal.id, session_id, request_id) if session_id else None",
            new='return ("", session_id, request_id) if session_id else None',
        ),
        failing_test=f"{MCP_ENDED_CALLS}::test_only_the_token_and_the_session_of_a_call_can_cancel_it",
    ),
    Guard(
        "mcp-cancel-own-session",
        "A cancellation with another session id ends no call, even with the call's token",
        Patch(
            "mcp_server/http/streamable.py",
            old="return (exchange.principal.id, session_id, request_id) if session_id else None",
            new='return (exchange.principal.id, "", request_id) if session_id else None',
        ),
        failing_test=f"{MCP_ENDED_CALLS}::test_only_the_token_and_the_session_of_a_call_can_cancel_it",
    ),
    Guard(
        "mcp-cancel",
        "A cancellation ends the call's wait",
        Patch(
            "mcp_server/http/streamable.py",
            old="            canceled.set()\n",
            new="            pass\n",
        ),
        failing_test=f"{MCP_ENDED_CALLS}::test_only_the_token_and_the_session_of_a_call_can_cancel_it",
    ),
    Guard(
        "mcp-sse-owner",
        "An SSE stream accepts messages only from the caller who opened it",
        Patch(
            "mcp_server/http/sse.py",
            old=" or owner != exchange.principal.id",
            new="",
        ),
        failing_test=f"{MCP_HTTP}::test_a_stream_accepts_messages_of_its_own_caller_only",
    ),
    Guard(
        "mcp-stream-of-an-ended-token",
        "A stream at /sse ends after its token was revoked or has expired",
        Patch(
            "mcp_server/http/sse.py",
            old="                tasks.start_soon(_cancel_with_credential, exchange.principal, tasks)\n",
            new="",
        ),
        failing_test="tests/contract/test_ended_tokens.py::test_an_open_mcp_stream_ends[revoke]",
    ),
    Guard(
        "mcp-list-changes-of-an-ended-token",
        "No change of the tool list is sent after the token was revoked or has expired",
        Patch(
            "mcp_server/tools/list_changes.py",
            old="if await in_thread(is_credential_active, principal):",
            new="if True:",
        ),
        failing_test="tests/contract/test_ended_tokens.py::"
        "test_a_subscription_sends_no_change_after_the_token_was_revoked",
    ),
    Guard(
        "mcp-method",
        "The route /mcp accepts POST only",
        Patch(
            "mcp_server/http/streamable.py",
            old="        exchange.require_method(self.method)\n",
            new="",
        ),
        failing_test=f"{MCP_HTTP}::test_mcp_accepts_post_only[GET]",
    ),
    Guard(
        "mcp-content-type",
        "The route /mcp accepts only JSON, which a page of another origin cannot send unasked",
        Patch("mcp_server/http/streamable.py", old="        exchange.require_json()\n", new=""),
        failing_test=f"{MCP_HTTP}::test_another_content_type_or_encoding_is_refused[headers0]",
    ),
    Guard(
        "mcp-accept",
        "The route /mcp requires that the client accepts both types of its responses",
        Patch(
            "mcp_server/http/streamable.py",
            old="        exchange.require_accept(*BOTH_TYPES)\n",
            new="",
        ),
        failing_test=f"{MCP_HTTP}::test_the_accept_header_must_allow_both_types[application/json]",
    ),
    Guard(
        "mcp-body-limit",
        "An MCP body without a declared length is cut off at 8 MiB",
        Patch(
            "config/asgi.py",
            old="self.is_too_large = self._left < 0",
            new="self.is_too_large = False",
        ),
        failing_test=f"{MCP_HTTP}::test_a_body_over_the_limit_is_refused[]",
    ),
)

_MCP_MESSAGE_GUARDS = (
    Guard(
        "json-duplicate-key",
        "JSON with a duplicate key is refused, because parsers disagree about its value",
        Patch(
            "decisions/validation/json_input.py",
            old="if len(fields) != len(pairs):",
            new="if False:",
        ),
        failing_test=f"{BAD_BODY}[a key twice-]",
    ),
    Guard(
        "json-constant",
        "JSON with NaN or Infinity is refused",
        Patch(
            "decisions/validation/json_input.py",
            old="            parse_constant=_refuse_constant,\n",
            new="",
        ),
        failing_test=f"{BAD_BODY}[NaN-]",
    ),
    Guard(
        "json-depth",
        "JSON nested deeper than 32 levels is refused",
        Patch(
            "decisions/validation/json_input.py",
            old="        if depth > MAX_DEPTH:\n",
            new="        if False:\n",
        ),
        failing_test=f"{BAD_BODY}[too deep-]",
    ),
    Guard(
        "json-values",
        "JSON with more than 100 000 values is refused",
        Patch(
            "decisions/validation/json_input.py",
            old="        if count > MAX_VALUES:\n",
            new="        if False:\n",
        ),
        failing_test=f"{BAD_BODY}[too many values-]",
    ),
    Guard(
        "json-nul",
        "A text with a NUL character is refused, because PostgreSQL cannot store it",
        Patch(
            "decisions/validation/json_input.py",
            old="""    if "\\0" in text:\n""",
            new="    if False:\n",
        ),
        failing_test=f"{BAD_BODY}[a NUL-]",
    ),
    Guard(
        "json-surrogate",
        "A text with half a surrogate pair is refused, because it has no UTF-8 form",
        Patch(
            "decisions/validation/json_input.py",
            old="        text.encode()\n",
            new="        pass\n",
        ),
        failing_test=f"{BAD_BODY}[half a surrogate pair-]",
    ),
    Guard(
        "json-number",
        "A number beyond the range of a double is refused",
        Patch(
            "decisions/validation/json_input.py",
            old="(isinstance(item, float) and math.isinf(item)) or ",
            new="",
        ),
        failing_test=f"{BAD_BODY}[a number out of range-]",
    ),
    Guard(
        "json-integer",
        "An integer beyond 64 bits is refused, because the databases cannot store it",
        Patch(
            "decisions/validation/json_input.py",
            old="not -(2**63) <= item < 2**63",
            new="False",
        ),
        failing_test=f"{BAD_BODY}[an integer out of range-]",
    ),
    Guard(
        "mcp-refused-arguments",
        "A call whose arguments are invalid JSON is refused, not performed without arguments",
        Patch(
            "mcp_server/server.py",
            old="            if context.refused is not None:\n",
            new="            if False:\n",
        ),
        failing_test=f"{MCP_ANSWERS}::"
        "test_a_call_with_invalid_json_in_its_arguments_is_not_performed_without_them[http]",
    ),
    Guard(
        "mcp-input-schema",
        "The arguments of a call are validated by the tool's schema",
        Patch(
            "mcp_server/server.py",
            old="            check(tool.input_validator, arguments)\n",
            new="",
        ),
        failing_test=f"{MCP_ANSWERS}::test_every_wrong_argument_is_named[http]",
    ),
    Guard(
        "mcp-output-schema",
        "A tool's result that does not match its schema is not sent",
        Patch(
            "mcp_server/server.py",
            old="if not tool.output_validator.is_valid(output):",
            new="if False:",
        ),
        failing_test=f"{MCP_ANSWERS}::test_a_defect_is_reported_with_an_error_id_only[violate_schema]",
    ),
    Guard(
        "mcp-error-details",
        "An internal error of a tool reveals nothing but an error id",
        Patch(
            "mcp_server/protocol/results.py",
            old="failed because of an internal error; the server's log has it under",
            new="failed because of {error}",
        ),
        failing_test=f"{MCP_ANSWERS}::test_a_defect_is_reported_with_an_error_id_only[raise_error]",
    ),
    Guard(
        "mcp-runner-tools-scope",
        "A caller without the scope tools:write neither lists nor calls the tools of runners",
        Patch(
            "mcp_server/tools/runner_tools.py",
            old="""if "tools:write" not in principal.scopes:""",
            new="if False:",
        ),
        failing_test=f"{MCP_TARGETS}::test_a_caller_without_the_scope_has_no_runner_tools",
    ),
    Guard(
        "mcp-denied-tools",
        "A tool that policy denies is not listed",
        Patch(
            "mcp_server/tools/list_changes.py",
            old=" if tool.is_listed]",
            new="]",
        ),
        failing_test=f"{MCP_TARGETS}::test_a_tool_that_policy_denies_is_not_listed_and_a_call_is_denied"
        "[http]",
    ),
    Guard(
        "mcp-listed-tools",
        "At most 128 tools of runners are listed",
        Patch(
            "mcp_server/tools/runner_tools.py",
            old="at_most=MAX_LISTED, ",
            new="at_most=1 << 20, ",
        ),
        failing_test=f"{MCP_TARGETS}::test_a_long_list_is_bounded[http]",
    ),
    Guard(
        "mcp-listed-bytes",
        "The schemas of the listed runner tools have at most 128 KiB together",
        Patch(
            "mcp_server/tools/runner_tools.py",
            old="schema_bytes=LIST_BYTES\n",
            new="schema_bytes=1 << 30\n",
        ),
        failing_test=f"{MCP_TARGETS}::test_a_long_list_is_bounded[http]",
    ),
    Guard(
        "mcp-listeners",
        "One process has at most MAX_LISTENERS open subscriptions",
        Patch(
            "mcp_server/tools/list_changes.py",
            old="if self._listeners >= MAX_LISTENERS:",
            new="if False:",
        ),
        failing_test="tests/contract/test_mcp_tool_list_changes.py::test_the_number_of_subscriptions_is_limited",
    ),
    Guard(
        "mcp-list-answer-size",
        "A list of runs over MCP ends at MCP_ANSWER_BYTES, because a model reads it",
        Patch(
            "mcp_server/toolsets/runtime.py",
            old="""        call=call.arguments,
        max_bytes=settings.MCP_ANSWER_BYTES,
""",
            new="        call=call.arguments,\n",
        ),
        failing_test=f"{MCP_BUDGET}::"
        "test_a_page_of_runs_ends_within_the_budget_and_the_next_page_continues[http]",
    ),
    Guard(
        "mcp-events-answer-size",
        "A page of events over MCP ends at MCP_ANSWER_BYTES",
        Patch(
            "mcp_server/toolsets/runtime.py",
            old="""        max_bytes=settings.MCP_ANSWER_BYTES,
        wait_s=""",
            new="        wait_s=",
        ),
        failing_test=f"{MCP_BUDGET}::"
        "test_a_page_of_events_ends_within_the_budget_and_the_next_page_continues[http]",
    ),
    Guard(
        "mcp-resource-answer-size",
        "One part of a resource with events has at most MCP_ANSWER_BYTES",
        Patch(
            "mcp_server/protocol/resources.py",
            old="        max_bytes=settings.MCP_ANSWER_BYTES,\n",
            new="",
        ),
        failing_test=f"{MCP_RESOURCES}::test_events_are_read_page_by_page[http]",
    ),
    Guard(
        "mcp-resource-chunk-size",
        "One part of a resource with an artifact has at most MCP_ANSWER_BYTES",
        Patch(
            "mcp_server/protocol/resources.py",
            old="        limit=settings.MCP_ANSWER_BYTES,\n",
            new="",
        ),
        failing_test=f"{MCP_RESOURCES}::test_a_large_artifact_is_read_chunk_by_chunk[http-text/plain]",
    ),
    Guard(
        "mcp-resource-workspace",
        "A caller cannot read a run of another workspace as a resource",
        Patch(
            "runs/queries/visibility.py",
            old="WHERE id = %s AND workspace_id = %s AND",
            new="WHERE id = %s AND (workspace_id = %s OR 1 = 1) AND",
        ),
        failing_test=f"{MCP_RESOURCES}::test_another_workspaces_resources_are_neither_listed_nor_readable"
        "[http]",
    ),
)

_MCP_STDIO_GUARDS = (
    Guard(
        "stdio-own-output",
        "Only protocol messages are written to the stdout that the host reads",
        Patch(
            "mcp_server/stdio/descriptors.py",
            old="        os.dup2(2, 1)\n",
            new="        pass\n",
        ),
        failing_test=f"{MCP_PROCESS}::test_stdout_contains_only_protocol_messages",
    ),
    Guard(
        "stdio-own-input",
        "Only the server reads the stdin that the host writes to, not a child process",
        Patch(
            "mcp_server/stdio/descriptors.py",
            old="    os.dup2(devnull, 0)\n",
            new="",
        ),
        failing_test=f"{MCP_PROCESS}::test_stdout_contains_only_protocol_messages",
    ),
    Guard(
        "stdio-line-memory",
        "A line without an end does not fill the memory of the server",
        Patch(
            "mcp_server/protocol/line_reader.py",
            old="            del self._data[:-EDGE_BYTES]\n",
            new="            pass\n",
        ),
        failing_test=f"{MCP_ANSWERS}::test_an_endless_line_does_not_fill_the_memory",
    ),
    Guard(
        "stdio-line-limit",
        "A line over 8 MiB gets an error response, and the next one is served",
        Patch(
            "mcp_server/protocol/line_reader.py",
            old="""        if self._size > self._limit:
            return OversizedLine(self._head, bytes(self._data))
""",
            new="",
        ),
        failing_test=f"{MCP_PROCESS}::test_a_line_over_8_mib_gets_an_error_and_is_skipped",
    ),
    Guard(
        "stdio-closed-output",
        "A server whose host closed stdout ends without an error",
        Patch(
            "mcp_server/stdio/streams.py",
            old="with suppress(BrokenPipeError, ConnectionResetError):",
            new="with suppress(ConnectionResetError):",
        ),
        failing_test=f"{MCP_PROCESS}::test_the_process_exits_when_the_host_closes_stdout",
    ),
)

_MCP_BROWSER_GUARDS = (
    Guard(
        "mcp-page-marks",
        "The text of a page that a host gets is marked as untrusted",
        Patch(
            "mcp_server/tools/browser_tools.py",
            old='return fence_page("\\n".join(lines), page["url"])',
            new='return "\\n".join(lines)',
        ),
        failing_test=f"{MCP_BROWSER}::test_a_host_acts_on_pages_that_each_answer_shows",
    ),
    Guard(
        "mcp-person-had-page",
        "An action chosen for the page as it was before a takeover is not performed",
        Patch(
            "runs/task_templates/builtin/session_action.py",
            old="if was_taken_over and action.effect != Effect.READ:",
            new="if False:",
        ),
        failing_test=f"{MCP_BROWSER}::test_no_action_is_performed_while_a_person_has_the_page",
    ),
    Guard(
        "mcp-result-marks",
        "What a page may have written of a result is marked as untrusted",
        Patch(
            "runners/actions/untrusted_page.py",
            old="elif name in _OWN or not _has_text(value):",
            new="elif True:",
        ),
        failing_test=f"{MCP_BROWSER}::test_text_of_the_page_cannot_end_its_marks",
    ),
    Guard(
        "mcp-other-tab",
        "An action chosen for one tab is not performed in another that the host has never seen",
        Patch(
            "runs/task_templates/builtin/session_action.py",
            old="if action.effect == Effect.READ:",
            new="if True:",
        ),
        failing_test=f"{MCP_BROWSER}::"
        "test_an_action_chosen_for_one_tab_is_not_performed_in_another",
    ),
    Guard(
        "mcp-upload-scope",
        "A caller who may not read artifacts cannot upload one to a page",
        Patch(
            "runs/direct_calls/browser_actions.py",
            old='for scope in ("tools:write", *further_scopes_of(tool)):',
            new='for scope in ("tools:write",):',
        ),
        failing_test=f"{MCP_BROWSER}::test_a_host_without_the_scope_gets_no_artifacts",
    ),
    Guard(
        "mcp-answered-question",
        "A person's answer to one question is not recorded as the answer to another",
        Patch(
            "mcp_server/tools/elicitation.py",
            old="given = responses.get(key)",
            new="given = next(iter(responses.values()))",
        ),
        failing_test="tests/contract/test_mcp_elicitation.py::"
        "test_the_answer_to_one_question_is_not_recorded_as_the_answer_to_another[auto]",
    ),
    Guard(
        "mcp-typed-text",
        "What a host types is not stored in the messages of the session's task",
        Patch(
            "runs/direct_calls/browser_actions.py",
            old="orjson.dumps(event['args'])",
            new="orjson.dumps(dict(self.args))",
        ),
        failing_test=f"{MCP_BROWSER}::test_a_host_acts_on_pages_that_each_answer_shows",
    ),
    Guard(
        "mcp-unlisted-template",
        "Callers cannot run a template that only this program submits",
        Patch(
            "runs/task_templates/registry.py",
            old="if template is None or (is_listed and not template.is_listed):",
            new="if template is None:",
        ),
        failing_test=f"{MCP_BROWSER}::test_callers_cannot_run_the_template_of_the_actions",
    ),
    Guard(
        "mcp-operator-link",
        "An agent's host cannot decide with the link to a confirmation's page",
        Patch(
            "decisions/views/confirmation_page.py",
            old="""        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path(), reverse("admin:login"))
        if not (request.user.is_staff and request.user.has_perm(MAY_DECIDE)):
            raise PermissionDenied
""",
            new="        pass\n",
        ),
        failing_test="tests/contract/test_mcp_elicitation.py::"
        "test_agreeing_to_open_the_page_of_a_confirmation_confirms_nothing[auto]",
    ),
)
_REST_GUARDS = (
    Guard(
        "rest-token",
        "No route with scopes answers without a token",
        Patch(
            "decisions/api/drf.py",
            old="""        if not isinstance(principal, Principal):
            raise NotAuthenticated("This call needs a bearer token.")
""",
            new="""        if not isinstance(principal, Principal):
            from decisions.identity.principals import local_principal

            principal = request.auth = local_principal()
""",
        ),
        failing_test=f"{ACCESS}::test_without_a_valid_token_there_is_no_access[None]",
    ),
    Guard(
        "rest-revoked-token",
        "A revoked token is refused from the next call on",
        Patch(
            "decisions/identity/principals.py",
            old=" AND token.revoked_at IS NULL\n",
            new="\n",
        ),
        failing_test=f"{ACCESS}::test_a_revoked_token_is_refused",
    ),
    Guard(
        "rest-scope",
        "A route requires its scope before it reads the arguments",
        Patch(
            "decisions/api/drf.py",
            old="""principal.require(scopes.get(method, "none that exists"))""",
            new="scopes.get(method)",
        ),
        failing_test=f"{ACCESS}::test_a_token_without_the_scope_is_refused_and_the_refusal_audited"
        "[POST-/api/v1/runs-runs:write]",
    ),
    Guard(
        "rest-host",
        "REST refuses a Host header of another server",
        (
            Patch(
                "decisions/api/view.py",
                old="        request.get_host()  # refuses a host that is not in ALLOWED_HOSTS\n",
                new="",
            ),
            _HOST_UNCHECKED,
        ),
        failing_test=f"{ACCESS}::test_an_unknown_host_header_is_refused",
    ),
    Guard(
        "forwarded-call-is-remote",
        "A call through a proxy has the trust level remote, whatever its token grants",
        Patch("decisions/api/drf.py", old="return not forwarded and ", new="return "),
        failing_test=f"{ACCESS}::test_a_local_token_behind_a_proxy_is_treated_as_remote[headers0]",
    ),
    Guard(
        "other-machine-is-remote",
        "A call from another machine has the trust level remote",
        Patch("decisions/api/drf.py", old="is_loopback(peer) and ", new=""),
        failing_test=f"{ACCESS}::test_a_local_token_is_remote_from_another_machine_or_by_another_host_name"
        "[peer]",
    ),
    Guard(
        "other-host-name-is-remote",
        "A call by a host name other than this machine's has the trust level remote",
        Patch("decisions/api/drf.py", old=" and is_loopback(_host_name(host))", new=""),
        failing_test=f"{ACCESS}::test_a_local_token_is_remote_from_another_machine_or_by_another_host_name"
        "[host]",
    ),
    Guard(
        "rest-rate",
        "REST calls over the caller's rate are refused",
        Patch(
            "decisions/api/view.py",
            old="        super().check_throttles(request)\n",
            new="",
        ),
        failing_test=f"{ACCESS}::test_the_burst_of_one_caller_does_not_throttle_another",
    ),
    Guard(
        "rest-rate-per-token",
        "The calls of one token do not count toward the rate of another",
        Patch(
            "decisions/api/drf.py",
            old="if secret and _calls.exceeds(throttle_key(secret), limit=limit):",
            new='if secret and _calls.exceeds("all", limit=limit):',
        ),
        failing_test=f"{ACCESS}::test_the_burst_of_one_caller_does_not_throttle_another",
    ),
    Guard(
        "rest-head-limit",
        "A request with more than 64 KiB of headers is refused, whichever HTTP server is used",
        Patch(
            "config/asgi.py",
            old="if _head_bytes(scope) > HEAD_MAX_BYTES:\n",
            new="if False:\n",
        ),
        failing_test=f"{LIMITS}::test_every_server_refuses_large_headers[httptools]",
    ),
    Guard(
        "rest-declared-length",
        "A request that declares too large a body is refused before the body is read",
        Patch(
            "config/asgi.py",
            old="self.is_too_large = declared.isdigit() and int(declared) > self.limit",
            new="self.is_too_large = False",
        ),
        failing_test=f"{LIMITS}::test_a_body_with_a_huge_content_length_is_not_read",
    ),
    Guard(
        "rest-body-limit",
        "A JSON body has at most 1 MiB",
        (
            Patch(
                "decisions/api/arguments.py",
                old="    if len(raw) > limit:\n",
                new="    if False:\n",
            ),
            Patch(
                "decisions/validation/json_input.py",
                old="    if len(raw) > limit:\n",
                new="    if False:\n",
            ),
            Patch(
                "decisions/api/arguments.py",
                old="request.read(limit + 1)",
                new="request.read()",
            ),
        ),
        failing_test=f"{LIMITS}::test_a_body_over_one_mebibyte_is_refused",
    ),
    Guard(
        "rest-content-type",
        "A body is accepted only as JSON, which a page of another origin cannot send unasked",
        Patch("decisions/api/arguments.py", old="    check_content_type(request)\n", new=""),
        failing_test=f"{LIMITS}::test_only_plain_json_is_accepted[headers0]",
    ),
    Guard(
        "rest-content-encoding",
        "A compressed body is refused",
        Patch("decisions/api/arguments.py", old="    check_encoding(request)\n", new=""),
        failing_test=f"{LIMITS}::test_only_plain_json_is_accepted[headers4]",
    ),
    Guard(
        "rest-repeated-parameter",
        "A parameter that is given twice is refused",
        Patch(
            "decisions/api/arguments.py",
            old="            if len(values) > 1:\n",
            new="            if False:\n",
        ),
        failing_test=f"{REST_ROWS}[rest:12 INVALID_PARAMETER a parameter twice]",
    ),
    Guard(
        "rest-integer",
        "A number in a query is written in ASCII digits",
        Patch(
            "decisions/api/arguments.py",
            old="if not _INTEGER.fullmatch(text):",
            new="if False:",
        ),
        failing_test=f"{REST_ROWS}[rest:16 INVALID_PARAMETER a digit of another script]",
    ),
    Guard(
        "rest-path-parameter",
        "An id in the path cannot be replaced in the query",
        Patch(
            "decisions/api/arguments.py",
            old="            if name in given:\n",
            new="            if False:\n",
        ),
        failing_test=f"{REST_ROWS}[rest:33 INVALID_PARAMETER the id twice]",
    ),
    Guard(
        "rest-query-of-a-body",
        "A call with a body takes no argument from the query",
        Patch(
            "decisions/api/arguments.py",
            old="            if name not in self._in_query:\n",
            new="            if False:\n",
        ),
        failing_test=f"{REST_ROWS}[rest:59 INVALID_PARAMETER an argument in the query]",
    ),
    Guard(
        "rest-nul-in-address",
        "A NUL character in a path or query is refused, because PostgreSQL cannot store it",
        Patch(
            "decisions/api/arguments.py", old="""    if "\\0" in text:\n""", new="    if False:\n"
        ),
        failing_test=f"{REST_ROWS}[rest:28 INVALID_PARAMETER a NUL for an id]",
    ),
    Guard(
        "unknown-argument",
        "An argument that the call does not have is refused",
        Patch(
            "decisions/validation/json_schema.py",
            old="""        "required": list(properties) if required is None else required,
        "additionalProperties": False,
""",
            new="""        "required": list(properties) if required is None else required,
""",
        ),
        failing_test=f"{REST_ROWS}[rest:22 INVALID_PARAMETER a column that scopes the query]",
    ),
    Guard(
        "list-page-size",
        "A page of a list of runs, tasks, sessions or targets has at most 1000 entries",
        Patch(
            "decisions/validation/json_schema.py",
            old=""""maximum": 1000, "default": 50}""",
            new=""""default": 50}""",
        ),
        failing_test="tests/contract/test_rest_sessions.py::test_a_bad_query_is_refused[limit=1001]",
    ),
    Guard(
        "rest-wait-limit",
        "A call waits for at most 55 seconds",
        Patch(
            "runs/api/contract.py",
            old="""    "maximum": WAIT_MAX_MS,
""",
            new="",
        ),
        failing_test=f"{OBJECT_ROWS}[runs:182 INVALID_PARAMETER waitMs: one over the longest wait]",
    ),
    Guard(
        "rest-list-workspace",
        "A list of runs contains only those of the caller's workspace",
        Patch(
            "runs/queries/run_lists.py",
            old="filter(workspace_id=principal.workspace_id, hidden_at__isnull=True)",
            new="filter(hidden_at__isnull=True)",
        ),
        failing_test="tests/runs/api/test_runs.py::test_a_list_contains_no_run_of_another_workspace",
    ),
    Guard(
        "rest-run-time-to-live",
        "A run past its time to live is not found, also before the scheduler hides it",
        Patch(
            "runs/queries/visibility.py",
            old="if run is None or is_past_ttl(run):",
            new="if run is None:",
        ),
        failing_test="tests/runs/scheduler/test_expiry.py::"
        "test_an_expired_run_is_unknown_to_every_api_call[False]",
    ),
    Guard(
        "evidence-workspace",
        "A caller cannot export the evidence of another workspace's run",
        Patch(
            "runs/queries/evidence.py",
            old="filter(id=run_id, workspace_id=principal.workspace_id)",
            new="filter(id=run_id)",
        ),
        failing_test="tests/decisions/audit/test_bundles.py::test_a_run_of_another_workspace_has_no_evidence",
    ),
    Guard(
        "evidence-contents-scope",
        "Evidence with the bytes of artifacts needs the scope artifacts:read",
        Patch(
            "runs/queries/evidence.py",
            old=""", *(["artifacts:read"] if contents else [])""",
            new="",
        ),
        failing_test="tests/decisions/audit/test_bundles.py::test_evidence_needs_its_scopes",
    ),
    Guard(
        "metrics-scope",
        "Metrics need a token with the scope metrics:read, except from this machine",
        Patch(
            "config/metrics.py",
            old="return is_local_call(request) or super().has_permission(request, view)",
            new="return True",
        ),
        failing_test="tests/config/test_installation_metrics.py::test_a_remote_caller_needs_a_token_with_the_scope"
        "[headers0]",
    ),
    Guard(
        "rest-error-details",
        "An internal error reveals nothing but an error id",
        Patch(
            "config/api_errors.py",
            old='"The call failed: internal error."',
            new="str(error)",
        ),
        failing_test="tests/decisions/api/test_internal_errors.py::"
        "test_an_internal_error_answers_an_id_that_is_in_the_log",
    ),
    Guard(
        "rest-not-cached",
        "A response of the API is not cached",
        Patch(
            "decisions/api/view.py",
            old="""        "Cache-Control": "no-store",
""",
            new="",
        ),
        failing_test=f"{ACCESS}::test_a_response_is_neither_cached_nor_sniffed",
    ),
    Guard(
        "rest-nosniff",
        "A browser does not guess the media type of a response of the API",
        Patch(
            "decisions/api/view.py",
            old="""        "X-Content-Type-Options": "nosniff",
""",
            new="",
        ),
        failing_test=f"{ACCESS}::test_a_response_is_neither_cached_nor_sniffed",
    ),
    Guard(
        "csrf",
        "A form that another site posts with the session cookie is refused",
        Patch(
            "config/settings.py",
            old="""    "django.middleware.csrf.CsrfViewMiddleware",
""",
            new="",
        ),
        failing_test="tests/decisions/identity/test_one_time_login.py::test_a_post_from_another_site_is_refused",
    ),
)

_STREAM_GUARDS = (
    Guard(
        "stream-workspace",
        "A caller cannot open the stream of another workspace's task, with any Last-Event-ID",
        Patch(
            "runs/conversations/selectors.py",
            old="filter(id=storable_text(task_id), workspace_id=principal.workspace_id)",
            new="filter(id=storable_text(task_id))",
        ),
        failing_test=f"{TASK_READERS}::test_another_workspaces_stream_is_not_found",
    ),
    Guard(
        "stream-last-event-id",
        "A Last-Event-ID that is not the id of an event is refused",
        Patch(
            "runs/streaming/sse.py",
            old="if not (text.isascii() and text.isdigit() and len(text) <= 15):",
            new="if False:",
        ),
        failing_test=f"{EVENTS}::test_an_invalid_last_event_id_is_refused[-1]",
    ),
    Guard(
        "stream-revoked-token",
        "A stream ends after its token was revoked",
        Patch(
            "runs/streaming/sse.py",
            old="if not await _credential_checks().is_active(principal):",
            new="if False:",
        ),
        failing_test=f"{TASK_READERS}::test_a_stream_ends_when_its_token_is_revoked",
    ),
)

_SOCKET_GUARDS = (
    Guard(
        "socket-origin",
        "A WebSocket that a page of another origin opens is refused before the handshake",
        Patch(
            "runs/websockets/connection.py",
            old="if origin is not None and not is_allowed_origin(origin, host):",
            new="if False:",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_foreign_origin_is_refused_before_the_handshake"
        "[https://evil.example]",
    ),
    Guard(
        "socket-host",
        "A WebSocket with a Host header of another server is refused before the handshake",
        (
            Patch(
                "runs/websockets/connection.py",
                old="host, origin = request.get_host(), ",
                new='host, origin = request.META.get("HTTP_HOST", ""), ',
            ),
            _HOST_UNCHECKED,
        ),
        failing_test=f"{TASK_SOCKET}::test_another_host_name_and_another_path_are_refused",
    ),
    Guard(
        "socket-path",
        "Only the paths of tasks and of paired browsers accept a WebSocket",
        Patch(
            "config/asgi.py",
            old=""" or not is_known:""",
            new=":",
        ),
        failing_test=f"{LIMITS}::test_a_websocket_request_is_refused",
    ),
    Guard(
        "socket-credential",
        "A WebSocket without a credential in its header needs one in its first frame",
        Patch(
            "runs/websockets/connection.py",
            old="            await serve(socket, principal or await socket.authenticate())\n",
            new="""            from decisions.identity.principals import local_principal

            await serve(socket, principal or await in_thread(local_principal))
""",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_connection_without_a_credential_answers_no_frame",
    ),
    Guard(
        "socket-trust",
        "A token or ticket sent through a proxy gives the trust level remote",
        Patch(
            "runs/websockets/connection.py",
            old=' if is_local_call(self.request) else principal.with_trust("remote")',
            new="",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_token_in_a_frame_through_a_proxy_is_remote",
    ),
    Guard(
        "socket-workspace",
        "A caller cannot open the WebSocket of another workspace's task",
        Patch(
            "runs/conversations/selectors.py",
            old="filter(id=storable_text(task_id), workspace_id=principal.workspace_id)",
            new="filter(id=storable_text(task_id))",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_missing_task_and_another_workspaces_task_get_the_same_answer",
    ),
    Guard(
        "socket-task-id",
        "An id with a NUL character is answered as a missing task",
        Patch("runs/conversations/selectors.py", old="id=storable_text(task_id)", new="id=task_id"),
        failing_test=f"{TASK_READERS}::test_an_invalid_id_is_answered_as_a_missing_task[%00]",
    ),
    Guard(
        "socket-scope",
        "Opening the WebSocket of a task needs the scope tasks:read",
        Patch(
            "runs/conversations/selectors.py",
            old="""    principal.require("tasks:read")
    return task_object(""",
            new="    return task_object(",
        ),
        failing_test=f"{TASK_SOCKET}::test_reading_and_writing_a_task_require_their_scopes",
    ),
    Guard(
        "socket-frame-schema",
        "A frame with an unknown field is refused",
        Patch(
            "runs/websockets/conversation_frames.py",
            old="    check(_schema_of(frame), frame)\n",
            new="",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_bad_frame_gets_an_error_and_the_connection_stays_open"
        "[one field too many]",
    ),
    Guard(
        "socket-other-task",
        "A message for another task is refused",
        Patch(
            "runs/websockets/conversation_frames.py",
            old="    if named != task_id:\n",
            new="    if False:\n",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_bad_frame_gets_an_error_and_the_connection_stays_open"
        "[another task]",
    ),
    Guard(
        "socket-after",
        "The seq in the address of a WebSocket is a whole number",
        Patch(
            "runs/websockets/conversation.py",
            old="if text and not (text.isascii() and text.isdigit() and len(text) <= 15):",
            new="if False:",
        ),
        failing_test=f"{TASK_SOCKET}::test_an_invalid_seq_in_the_address_closes_the_connection[-1]",
    ),
    Guard(
        "socket-rate",
        "Frames over the caller's rate are refused",
        Patch(
            "runs/websockets/conversation.py",
            old="        await in_thread(throttle_principal, self._caller)\n",
            new="",
        ),
        failing_test=f"{TASK_SOCKET}::"
        "test_too_many_frames_per_second_are_refused_and_the_connection_stays_open",
    ),
    Guard(
        "socket-revoked-token-acts",
        "A message of a connection whose token was revoked is refused",
        Patch(
            "runs/websockets/conversation.py",
            old="        if not is_credential_active(caller):\n",
            new="        if False:\n",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_revoked_token_cannot_send_and_is_disconnected",
    ),
    Guard(
        "socket-revoked-token-reads",
        "A connection is closed after its token was revoked",
        Patch(
            "runs/websockets/conversation.py",
            old="if not await in_thread(is_credential_active, self._caller):",
            new="if False:",
        ),
        failing_test=f"{TASK_READERS}::test_a_busy_connection_ends_when_its_token_is_revoked",
    ),
)

_TICKET_GUARDS = (
    Guard(
        "ticket-once",
        "A ticket opens one connection",
        Patch(
            "runs/conversations/tickets.py",
            old="if ticket is None or not valid.delete()[0]:",
            new="if ticket is None:",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_ticket_opens_one_connection",
    ),
    Guard(
        "ticket-race",
        "Of two connections that send the same ticket at the same time, one is opened",
        Patch(
            "runs/conversations/tickets.py",
            old="if ticket is None or not valid.delete()[0]:",
            new="if ticket is None or not valid.delete():",
        ),
        failing_test=f"{TASK_READERS}::test_of_two_concurrent_uses_of_a_ticket_one_succeeds",
    ),
    Guard(
        "ticket-task",
        "A ticket is valid for its own task only",
        Patch(
            "runs/conversations/tickets.py",
            old="task_id=task_id, expires_at__gt",
            new="expires_at__gt",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_ticket_is_valid_for_its_task_and_for_one_minute",
    ),
    Guard(
        "ticket-expiry",
        "A ticket is valid for one minute",
        Patch(
            "runs/conversations/tickets.py",
            old="task_id=task_id, expires_at__gt=datetime.now(UTC)",
            new="task_id=task_id",
        ),
        failing_test=f"{TASK_SOCKET}::test_a_ticket_is_valid_for_its_task_and_for_one_minute",
    ),
    Guard(
        "ticket-revoked-token",
        "A ticket is invalid after the token that created it was revoked",
        Patch(
            "runs/conversations/tickets.py",
            old="    if not is_credential_active(principal):\n",
            new="    if False:\n",
        ),
        failing_test=f"{TASK_READERS}::test_a_ticket_is_invalid_once_its_token_is_revoked",
    ),
    Guard(
        "ticket-digest",
        "Only a keyed digest of a ticket is stored",
        (
            Patch(
                "runs/conversations/tickets.py",
                old="digest=mac(_PURPOSE, secret.encode()),",
                new="digest=secret,",
            ),
            Patch(
                "runs/conversations/tickets.py",
                old="digests = macs(_PURPOSE, secret.encode())",
                new="digests = (secret,)",
            ),
        ),
        failing_test=f"{TASK_READERS}::test_only_a_digest_of_a_ticket_is_stored",
    ),
    Guard(
        "ticket-of-a-viewer",
        "A user of the admin who may only view gets a ticket that cannot act",
        Patch(
            "runs/admin/tasks/admin.py",
            old="""            operator = replace(operator, scopes=frozenset({"tasks:read"}))
""",
            new="            pass\n",
        ),
        failing_test=f"{LIVE_SOCKET}::test_the_ticket_of_a_user_who_may_only_view_cannot_act",
    ),
)

_LIVE_GUARDS = (
    Guard(
        "live-workspace",
        "A caller cannot watch the live page of another workspace's task",
        Patch(
            "runs/websockets/live.py",
            old="await socket.get_task(caller)  # closes",
            new="# closes",
        ),
        failing_test=f"{LIVE_SOCKET}::"
        "test_another_workspaces_live_page_is_not_found_and_a_foreign_origin_is_refused",
    ),
    Guard(
        "live-scope",
        "A caller who may only read cannot act on the live page",
        Patch(
            "runs/websockets/live.py",
            old="""        self._caller.require("tasks:write")
""",
            new="",
        ),
        failing_test=f"{LIVE_SOCKET}::test_a_caller_who_may_only_read_watches_and_cannot_act",
    ),
    Guard(
        "live-takeover",
        "No input reaches the page while the agent controls it",
        Patch(
            "runs/websockets/live.py",
            old="if not is_taken_over(self._socket.task_id):",
            new="if False:",
        ),
        failing_test=f"{LIVE_SOCKET}::test_no_input_is_forwarded_while_the_agent_controls_the_page",
    ),
    Guard(
        "live-revoked-token-acts",
        "No input reaches the page after the viewer's token was revoked",
        Patch(
            "runs/websockets/live.py",
            old="        if not is_credential_active(self._caller):\n",
            new="        if False:\n",
        ),
        failing_test=f"{LIVE_SOCKET}::test_a_viewer_whose_token_is_revoked_cannot_act",
    ),
    Guard(
        "live-revoked-token-watches",
        "A viewer is disconnected after their token was revoked",
        Patch(
            "runs/websockets/live.py",
            old="if not await in_thread(is_credential_active, self._caller):",
            new="if False:",
        ),
        failing_test=f"{LIVE_SOCKET}::test_a_viewer_whose_token_is_revoked_is_disconnected",
    ),
    Guard(
        "lock-timeout",
        "A call waits for a lock of PostgreSQL for a limited time",
        Patch("config/asgi.py", old="limit_lock_waits()\n", new=""),
        failing_test="tests/decisions/infra/test_lock_timeout.py"
        "::test_a_call_answers_503_if_a_lock_is_not_released_in_time",
    ),
    Guard(
        "pooled-statements-not-prepared",
        "Behind a pooler in transaction mode, no statement is prepared",
        Patch(
            "decisions/infra/prepared_statements.py",
            old="if settings.TRANSACTION_POOLING:",
            new="if False:",
        ),
        failing_test=f"{POOLING}::test_transitions_of_many_clients_share_the_connections",
    ),
    Guard(
        "pooled-lock-timeout",
        "The lock limit of a call does not stay on a pooled connection",
        Patch("decisions/infra/lock_timeout.py", old='f"SET LOCAL', new='f"SET'),
        failing_test=f"{POOLING}::test_the_lock_limit_of_calls_does_not_reach_other_clients",
    ),
    Guard(
        "pooled-blob-lock",
        "Behind a pooler, the lock of a blob is held until its block ends",
        Patch("artifacts/storage/blob_lock.py", old="        own.set_autocommit(False)\n", new=""),
        failing_test=f"{POOLING}::test_a_blob_lock_leaves_no_lock_on_the_connection_of_the_pool",
    ),
    Guard(
        "live-viewers",
        "One process serves at most VIEWERS_MAX live pages",
        Patch(
            "runs/websockets/live.py", old="if _viewers.total() >= VIEWERS_MAX:", new="if False:"
        ),
        failing_test=f"{LIVE_SOCKET}::test_the_number_of_viewers_is_limited",
    ),
    Guard(
        "live-viewers-of-caller",
        "One caller has at most VIEWERS_OF_CALLER_MAX of them",
        Patch(
            "runs/websockets/live.py",
            old="if _viewers[caller.id] >= VIEWERS_OF_CALLER_MAX:",
            new="if False:",
        ),
        failing_test=f"{LIVE_SOCKET}::test_one_caller_cannot_take_the_live_pages_of_others",
    ),
    Guard(
        "live-input-rate",
        "The input of a fast client waits in its connection",
        Patch(
            "runs/websockets/live.py",
            old="await asyncio.sleep(max(0.0, started_at + 1 / PER_SECOND - time.monotonic()))",
            new="pass",
        ),
        failing_test=f"{LIVE_SOCKET}::test_frames_of_a_fast_client_are_handled_at_a_limited_rate",
    ),
    Guard(
        "live-input-schema",
        "Input that is not a known event is refused",
        Patch(
            "runs/websockets/live_frames.py",
            old="""            check(_VALIDATORS[one["kind"]], one)
""",
            new="            pass\n",
        ),
        failing_test=f"{LIVE_SOCKET}::test_invalid_input_is_refused_without_repeating_the_typed_text"
        "[events3]",
    ),
    Guard(
        "live-message-channel",
        "A message of a live page is accepted only on the channel that it was sealed for",
        (
            Patch(
                "decisions/security/sealed_messages.py", old="bound_to=channel)", new='bound_to="")'
            ),
            Patch(
                "decisions/security/sealed_messages.py",
                old="bound_to=self._channel)",
                new='bound_to="")',
            ),
        ),
        failing_test=f"{LIVE_SOCKET}::"
        "test_messages_captured_in_redis_reach_no_viewer_of_another_task_and_none_twice",
    ),
    Guard(
        "live-message-once",
        "Input of a live page that is sent again is not applied again",
        Patch(
            "decisions/security/sealed_messages.py",
            old='if envelope["id"] in self._opened:',
            new="if False:",
        ),
        failing_test="tests/runs/live/test_replayed_messages.py::"
        "test_input_that_is_sent_again_is_not_applied_again",
    ),
    Guard(
        "live-message-age",
        "A message of a live page is not accepted later",
        Patch(
            "decisions/security/sealed_messages.py",
            old="if abs(age_s) <= MAX_AGE_S:",
            new="if age_s:",
        ),
        failing_test=f"{LIVE_SOCKET}::"
        "test_a_message_is_opened_once_on_its_own_channel_while_it_is_new",
    ),
    Guard(
        "live-typed-text",
        "An error about input does not repeat the typed text",
        Patch(
            "runs/websockets/live_frames.py",
            old="""raise InvalidInput(f"events.{number}: {field} is not valid.") from None""",
            new="raise",
        ),
        failing_test=f"{LIVE_SOCKET}::test_invalid_input_is_refused_without_repeating_the_typed_text"
        "[events8]",
    ),
    Guard(
        "live-forged-message",
        "A message on the Redis channel that was not sealed with the installation's key is ignored",
        Patch(
            "decisions/security/sealed_messages.py",
            old="""        except ValueError:
            return None
""",
            new="""        except ValueError:
            forged: dict[str, Any] = orjson.loads(sealed)
            return forged
""",
        ),
        failing_test=f"{LIVE_SOCKET}::test_a_forged_message_is_not_forwarded_to_viewers",
    ),
    Guard(
        "live-encrypted",
        "Redis sees neither pictures nor typed text",
        (
            Patch(
                "decisions/security/sealed_messages.py",
                old="return seal(orjson.dumps(envelope), purpose=_PURPOSE, bound_to=channel)",
                new="return orjson.dumps(envelope)",
            ),
            Patch(
                "decisions/security/sealed_messages.py",
                old="orjson.loads(unseal(sealed, purpose=_PURPOSE, bound_to=self._channel))",
                new="orjson.loads(sealed)",
            ),
        ),
        failing_test=f"{LIVE_SOCKET}::test_typed_text_is_encrypted_in_redis",
    ),
)

_LIMITED = "runs/installation/web/http_protocol.py"
_LIMITS_TEST = "tests/runs/installation/web/test_connection_limits.py"

_NETWORK_GUARDS = (
    Guard(
        "slow-heads",
        "A request's head has to arrive in time",
        Patch(
            _LIMITED, old="            return self._limits.head_s\n", new="            return 60\n"
        ),
        failing_test=f"{_LIMITS_TEST}::test_an_unfinished_head_is_refused_in_time",
    ),
    Guard(
        "slow-bodies",
        "A request's body has to arrive in time",
        Patch(_LIMITED, old="return self._limits.body_s + ", new="return 60 + "),
        failing_test=f"{_LIMITS_TEST}"
        "::test_an_unfinished_body_is_refused_and_the_application_learns_it",
    ),
    Guard(
        "connections-of-one-client",
        "One client has a limited number of connections",
        Patch(
            "runs/installation/web/connection_limits.py",
            old="if self.peers[peer] >= self.limits.per_peer and",
            new="if False and",
        ),
        failing_test=f"{_LIMITS_TEST}"
        "::test_connections_over_a_limit_are_refused_until_others_close[limits0-429]",
    ),
    Guard(
        "secure-cookies",
        "With an https public URL, cookies are sent over TLS alone",
        Patch(
            "config/settings.py",
            old="SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_PUBLIC_OVER_TLS\n",
            new="SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False\n",
        ),
        failing_test="tests/config/test_public_url.py"
        "::test_cookies_and_pages_need_tls_if_the_public_url_is_https[https and a proxy]",
    ),
    Guard(
        "forged-forwarded-headers",
        "Addresses and schemes in headers of clients that are no trusted proxies do not count",
        Patch(
            "runs/management/commands/serve.py",
            old="forwarded_allow_ips=[str(network) for network in proxies],",
            new='forwarded_allow_ips="*",',
        ),
        failing_test="tests/runs/installation/web/test_tls_proxy.py"
        "::test_forged_headers_change_neither_the_address_nor_the_scheme",
    ),
    Guard(
        "cors-listed-origins",
        "Only pages of the listed origins may call the REST API",
        Patch("config/http/cors.py", "allow_origins=origins,", 'allow_origins=("*",),'),
        failing_test="tests/config/test_cors.py::test_a_page_of_another_origin_may_not[null]",
    ),
    Guard(
        "cors-without-cookies",
        "A page of another origin never sends cookies",
        Patch(
            "config/http/cors.py",
            "        app,\n",
            "        app,\n        allow_credentials=True,\n",
        ),
        failing_test="tests/config/test_cors.py::test_a_page_of_a_listed_origin_may_send_a_token",
    ),
    Guard(
        "cors-rest-alone",
        "Pages of other origins may read neither admin pages, MCP nor metrics",
        Patch("config/asgi.py", 'is_rest = scope["path"].startswith(REST)', "is_rest = True"),
        failing_test="tests/config/test_cors.py"
        "::test_nothing_but_the_rest_api_is_open_to_other_origins[/healthz]",
    ),
    Guard(
        "static-version-of-the-content",
        "A browser keeps a file for long only at the address with the version of its content",
        Patch(
            "config/http/static_files.py",
            "if version and version == version_of(path) else",
            "if version else",
        ),
        failing_test="tests/config/test_static_files.py"
        "::test_only_the_version_of_the_content_is_kept_for_long",
    ),
    Guard(
        "secrets-are-not-compressed",
        "A page that shows a new token is not compressed: its length says nothing about the token",
        Patch(
            "config/http/compression.py",
            old='request.method == "GET"\n        and ',
            new="",
        ),
        failing_test="tests/config/test_compression.py"
        "::test_the_page_that_shows_a_new_token_is_not_compressed",
    ),
    Guard(
        "proxy-replaces-forwarded-headers",
        "The shipped proxy replaces the address that a client claims",
        Patch(
            "deploy/proxy/nginx.conf",
            old="proxy_set_header X-Forwarded-For $remote_addr;",
            new="proxy_set_header X-Forwarded-For $http_x_forwarded_for;",
        ),
        failing_test="tests/runs/installation/web/test_tls_proxy.py"
        "::test_forged_headers_change_neither_the_address_nor_the_scheme",
    ),
)

GUARDS = (
    *_NETWORK_GUARDS,
    *_UPLOAD_GUARDS,
    *_S3_GUARDS,
    *_ARTIFACT_GUARDS,
    *_READING_GUARDS,
    *_MCP_ACCESS_GUARDS,
    *_MCP_MESSAGE_GUARDS,
    *_MCP_STDIO_GUARDS,
    *_MCP_BROWSER_GUARDS,
    *_REST_GUARDS,
    *_STREAM_GUARDS,
    *_SOCKET_GUARDS,
    *_TICKET_GUARDS,
    *_LIVE_GUARDS,
    *own_browser.TRANSPORTS,
    *paired_browsers.TRANSPORTS,
)
