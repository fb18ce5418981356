"""Markup of pages that are difficult to read, by path."""

from __future__ import annotations

PAGES: dict[str, str] = {
    "/plain": "<!doctype html><title>Plain</title><h1>Plain</h1><p>Nothing but text.</p>",
    "/other": "<!doctype html><title>Other</title><h1>Other</h1><p>Another page.</p>",
    "/script-rendered": """<!doctype html><title>Loading…</title><div id=root></div><script>
        setTimeout(() => fetch('/api/slow.json').then((r) => r.json()).then((data) => {
          document.title = 'Rendered';
          root.innerHTML = '<h1>Rendered</h1><p>' + data.text + '</p><button>Go on</button>';
        }), 400);
        </script>""",
    "/xhr": """<!doctype html><title>XHR</title><p id=out>waiting</p><script>
        const x = new XMLHttpRequest(); x.open('GET', '/api/slow.json');
        x.onload = () => { out.textContent = JSON.parse(x.responseText).text; }; x.send();
        </script>""",
    "/dynamic-script": """<!doctype html><title>Chunks</title><div id=app></div><script>
        import('/chunk.js');
        </script>""",
    "/alert-loop": "<title>Alerts</title><p>before<script>while (true) alert(1)</script>",
    "/late-alert-loop": """<title>A</title><p>x
        <script>setTimeout(() => { while (true) alert(1) }, 20)</script>""",
    "/few-dialogs": """<!doctype html><title>Few</title><p id=out></p><script>
        alert('a'); out.textContent = [confirm('b'), prompt('c', 'd')].join();
        </script>""",
    "/popups": "<title>P</title><p>x<script>for (;;) window.open('/plain')</script>",
    "/one-popup": """<!doctype html><title>One</title><p>opener
        <script>popup = window.open('/other')</script>""",
    "/busy-loop": "<title>Busy</title><p>x<script>for (;;);</script>",
    "/late-busy-loop": """<!doctype html><title>Late</title><h1>Readable</h1><p>It came first.
        <script>addEventListener('load', () => { for (;;); })</script>""",
    "/endless-timers": """<!doctype html><title>Timers</title><p id=n>0</p><script>
        const tick = () => { n.textContent++; setTimeout(tick, 20); }; tick();</script>""",
    "/endless-requests": """<!doctype html><title>Polls</title><p>polling<script>
        const poll = () => fetch('/plain?' + Math.random()).then(poll); poll();</script>""",
    "/long-poll": """<!doctype html><title>Long poll</title><p>text
        <script>fetch('/api/never')</script>""",
    "/hanging-image": "<!doctype html><title>Image</title><p>Text beside.<img src=/slow.png>",
    "/reload-loop": "<title>Again</title><p>x<script>location.reload()</script>",
    "/script-redirect": "<title>Go</title><p>leaving<script>location.href = '/plain'</script>",
    "/meta-refresh": "<title>Go</title><meta http-equiv=refresh content='0; url=/plain'><p>leave",
    "/clears-timers": """<!doctype html><title>Clears</title><p id=out>old<script>
        setInterval(() => { for (let i = 0; i < 10000; i++) if (i !== me) clearTimeout(i); }, 5);
        const me = setTimeout(() => { out.textContent = 'new'; }, 300);</script>""",
    "/broken-builtins": """<!doctype html><title>Hostile</title><h1>Still read</h1><p>Text.</p>
        <form><input name=childNodes><input name=getAttribute>
        <input name=nodeType value=v></form>
        <img name=body><img name=querySelectorAll><script>
        const fail = () => { throw 1; };
        Array.prototype.map = Array.prototype.push = Array.prototype[Symbol.iterator] = fail;
        Object.prototype.toJSON = String.prototype.replace = () => 'hijacked';
        window.JSON = window.Promise = Map.prototype.set = null;
        Element.prototype.getAttribute = () => 'hijacked';
        EventTarget.prototype.addEventListener = Node.prototype.appendChild = null;
        Function.prototype.call = Function.prototype.apply = null;
        </script>""",
}
