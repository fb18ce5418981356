// Detect fields that hold secrets, and mask their values as "***" wherever they appear.
const MASK = "***";
const SECRET_PARTS = /password|passwd|passphrase|passcode|secret(?!ar)|token(?!i[sz])|api ?key|credential|密码|密碼|口令|密钥|秘钥|密鑰|金鑰|令牌|权杖|權杖|私钥|私鑰|验证码|驗證碼|校验码|动态码|动态密码|安全码|凭证|凭据|憑證|助记词|授权码/i;
const SECRET_WORDS = /\b(pass|pwd|pw|psw|pin|pin ?code|otp|totp|one time code|2fa|mfa|cvv2?|cvc2?|csc|cc csc|cc number|security code|verification code|recovery code|backup code|seed phrase|mnemonic|(access|auth|private|secret|encryption|signing|license|session|account|shared) ?key|authorization|bearer|jwt|csrf|xsrf|session ?id)\b/i;

const looksSecret = (name) => {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/[\s_\-.:[\]/]+/g, " ");
  return SECRET_PARTS.test(words) || SECRET_WORDS.test(words);
};

const fieldLabels = (element, textOf = rawText) => {
  const labels = [...(own(element, "labels") ?? [])].map(textOf);
  const ids = (attr(element, "aria-labelledby") ?? "").split(/\s+/).filter(Boolean);
  const named = ids.map((id) => rootNodeOf(element).getElementById?.(id)).filter(Boolean).map(textOf);
  return [...labels, ...named];
};

const NAMING_ATTRIBUTES = ["type", "name", "id", "autocomplete", "aria-label", "placeholder", "title", "data-testid"];
const isSecretField = (element) => {
  if (attr(element, "type")?.toLowerCase() === "password") return true;
  const names = NAMING_ATTRIBUTES.map((name) => attr(element, name)).filter(Boolean);
  if ([...names, ...fieldLabels(element)].some((name) => looksSecret(name.slice(0, 200)))) return true;
  return !["none", ""].includes(getComputedStyle(element).webkitTextSecurity ?? "none");
};

const FIELDS = "input:not([type=hidden]):not([type=button]):not([type=submit]):not([type=reset]):not([type=image])," +
  "textarea,select,[contenteditable=''],[contenteditable=true i],[contenteditable=plaintext-only i],[role=textbox],[role=searchbox]";
const isNativeField = (element) => ["input", "textarea", "select"].includes(tagOf(element));
const fieldValue = (element) => (isNativeField(element) ? element.value : lineOfText(element, 2000)) ?? "";

// The secret fields of these roots, and the values to mask elsewhere: those that are long enough not to be common words.
const findSecrets = (roots) => {
  const fields = new Set();
  const values = new Set();
  for (const root of roots) {
    for (const element of all(root, FIELDS)) {
      if (!isSecretField(element)) continue;
      fields.add(element);
      const value = fieldValue(element).trim();
      if (value.length >= 4 && !["checkbox", "radio"].includes(attr(element, "type"))) values.add(value);
    }
  }
  return { fields, values: [...values].sort((a, b) => b.length - a.length) };
};

// Replace each secret value by the mask; a short value only where it is a separate word.
const masked = (text, values) => {
  for (const value of values) {
    if (!text.includes(value)) continue;
    if (value.length >= 8) {
      text = text.replaceAll(value, MASK);
      continue;
    }
    const literal = value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    text = text.replace(new RegExp(`(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, "g"), MASK);
  }
  return text;
};
