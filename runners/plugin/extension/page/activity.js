(() => {
if (window !== window.top) return;
const SHORT_TIMER_MS = 500;
const LONGEST_TIMER_CHAIN = 5; // a timer that keeps rescheduling itself is not part of loading
const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect;
const call = Function.prototype.call;
const listen = call.bind(EventTarget.prototype.addEventListener);
const cancel = call.bind(Event.prototype.preventDefault);
const hide = call.bind(Event.prototype.stopImmediatePropagation);
const then = call.bind(Promise.prototype.then);
const test = call.bind(RegExp.prototype.test);
const NativeProxy = Proxy;
const NativeNumber = Number;
const pendingTimers = new Map();
const rememberTimer = pendingTimers.set.bind(pendingTimers);
const forgetTimer = pendingTimers.delete.bind(pendingTimers);
let requests = 0;
let timers = 0;
let chain = 0;
let leaving = false;
let everRequested = false;
const wrap = (owner, name, applied) => {
const descriptor = owner && getOwnPropertyDescriptor(owner, name);
if (!descriptor || typeof descriptor.value !== "function" || !descriptor.configurable) return;
descriptor.value = new NativeProxy(descriptor.value, { __proto__: null, apply: applied });
defineProperty(owner, name, descriptor);
};
const startRequest = () => {
requests += 1;
everRequested = true;
let open = true;
return () => {
if (open) requests -= 1;
open = false;
};
};
const counted = (target, self, args) => {
const promise = apply(target, self, args);
const end = startRequest();
then(promise, end, end);
return promise;
};
wrap(window, "fetch", counted);
const response = window.Response && window.Response.prototype;
wrap(response, "json", counted);
wrap(response, "text", counted);
wrap(response, "arrayBuffer", counted);
wrap(response, "blob", counted);
wrap(window.XMLHttpRequest && XMLHttpRequest.prototype, "send", (target, self, args) => {
const end = startRequest();
listen(self, "loadend", end, { __proto__: null, once: true });
try {
return apply(target, self, args);
} catch (error) {
end();
throw error;
}
});
const isShort = (delay) => {
const kind = typeof delay;
if (kind !== "undefined" && kind !== "number" && kind !== "string") return false;
return !(NativeNumber(delay) > SHORT_TIMER_MS);
};
wrap(window, "setTimeout", (target, self, args) => {
const callback = args[0];
if (typeof callback !== "function" || !isShort(args[1])) return apply(target, self, args);
const counts = chain < LONGEST_TIMER_CHAIN;
const link = counts ? chain + 1 : chain;
args[0] = function (...given) {
if (forgetTimer(id)) timers -= 1;
const before = chain;
chain = link;
try {
return apply(callback, this, given);
} finally {
chain = before;
}
};
const id = apply(target, self, args);
if (counts) {
rememberTimer(id, true);
timers += 1;
}
return id;
});
const clear = (target, self, args) => {
if (forgetTimer(args[0])) timers -= 1;
return apply(target, self, args);
};
wrap(window, "clearTimeout", clear);
wrap(window, "clearInterval", clear);
const opensOtherProgram = (address) => !test(/^(https?|file|data|blob|about|javascript):/i, address); // mailto:, tel:
if (window.navigation) {
listen(window.navigation, "navigate", (event) => {
if (event.destination.sameDocument || event.downloadRequest !== null || opensOtherProgram(event.destination.url)) return;
leaving = true;
});
listen(window.navigation, "navigateerror", () => {
leaving = false;
});
}
const respond = (name, isTrue) =>
listen(document, name, (event) => {
hide(event);
if (isTrue()) cancel(event);
}, true);
respond("__TOKEN__busy", () => requests > 0 || timers > 0 || leaving);
respond("__TOKEN__ever", () => everRequested);
respond("__TOKEN__stays", () => {
leaving = false;
return false;
});
})();
