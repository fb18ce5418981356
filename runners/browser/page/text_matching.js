// Compare the words of a query with the words of an element. Width, case and accents are folded, Chinese is split into
// pairs of characters, synonyms are unified, and words for a kind of element ("button", "输入框") are separated.
const SAME_MEANING = [
  ["search", "find", "lookup", "搜索", "搜寻", "搜尋", "查询", "查詢", "查找", "检索", "檢索"],
  ["login", "log in", "log on", "logon", "sign in", "signin", "登录", "登陆", "登錄", "登入"],
  ["logout", "log out", "log off", "sign out", "signout", "退出登录", "退出", "注销", "登出"],
  ["register", "sign up", "signup", "create account", "create an account", "注册", "註冊", "新规登录"],
  ["username", "user name", "user id", "userid", "login name", "用户名", "用戶名", "用户名称", "账号", "帐号", "账户名", "使用者名稱", "使用者名称", "帳號"],
  ["password", "passwd", "密码", "密碼", "口令"],
  ["email", "e mail", "mail address", "邮箱", "電子郵件", "电子邮件", "电子邮箱", "信箱", "邮箱地址", "email address", "e mail address"],
  ["phone", "telephone", "mobile", "cell phone", "phone number", "mobile number", "手机", "手机号", "手机号码", "电话", "电话号码", "電話", "手機"],
  ["submit", "提交", "送出"],
  ["send", "发送", "發送"],
  ["next", "next page", "下一页", "下页", "下一頁", "后页"],
  ["previous", "prev", "previous page", "上一页", "上页", "上一頁"],
  ["cancel", "取消"],
  ["ok", "confirm", "确定", "确认", "確定", "確認"],
  ["save", "保存", "儲存"],
  ["delete", "remove", "删除", "刪除", "移除"],
  ["edit", "编辑", "編輯"],
  ["close", "关闭", "關閉"],
  ["address", "地址"],
  ["date", "日期"],
  ["country", "国家", "國家"],
  ["city", "城市"],
  ["quantity", "qty", "数量", "數量"],
  ["add to cart", "add to basket", "加入购物车", "加入購物車"],
];
const SYMBOLS = { next: /^[›»>→⟩▶]+$/u, previous: /^[‹«<←⟨◀]+$/u, close: /^[×✕✖✗]$/u };
const STOP_WORDS = new Set(["the", "a", "an", "of", "to", "for", "your", "my", "please", "enter", "type", "in", "on", "here", "this"]);
const STOP_CHARACTERS = /请输入|请填写|请选择|請輸入|請選擇|您的|你的|我的|请|請|的/gu;
const KIND_WORDS = {
  button: ["button", "btn", "按钮", "按鈕"],
  link: ["link", "hyperlink", "链接", "鏈接", "連結"],
  field: ["field", "input", "input field", "box", "input box", "text box", "textbox", "text field", "textarea", "输入框", "文本框", "輸入框", "输入栏", "字段", "框"],
  checkbox: ["checkbox", "check box", "tick box", "复选框", "勾选框", "核取方塊"],
  radio: ["radio", "radio button", "单选框", "单选按钮", "單選按鈕"],
  choice: ["dropdown", "drop down", "select", "select box", "combobox", "combo box", "下拉框", "下拉菜单", "下拉列表", "选择框", "下拉選單"],
  tab: ["tab", "选项卡", "标签页"],
};

const isLatin = (phrase) => /^[\x20-\x7e]+$/.test(phrase);
const anyOf = (phrases) => {
  const longestFirst = [...phrases].sort((a, b) => b.length - a.length);
  const latin = longestFirst.filter(isLatin).map((phrase) => phrase.replaceAll(" ", "[ ]"));
  const other = longestFirst.filter((phrase) => !isLatin(phrase));
  return new RegExp([`(?<![a-z0-9])(?:${latin.join("|")})(?![a-z0-9])`, ...other].join("|"), "gu");
};
const MEANING_OF = new Map(SAME_MEANING.flatMap((group) => group.map((phrase) => [phrase, group[0].replaceAll(" ", "")])));
const MEANINGS = anyOf(MEANING_OF.keys());
const KIND_OF = new Map(Object.entries(KIND_WORDS).flatMap(([kind, phrases]) => phrases.map((phrase) => [phrase, kind])));
const KINDS = anyOf(KIND_OF.keys());
const CJK_RUN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+/u;
const WORD = new RegExp(`${CJK_RUN.source}|[\\p{L}\\p{N}]+`, "gu");

// NFKC makes full-width letters narrow. Accents are removed from Latin letters only, because か and が differ.
const fold = (text) => {
  const plain = text.normalize("NFKC").toLowerCase().replace(/[\u200b\u2060\ufeff\u00ad]/g, "");
  const sign = Object.keys(SYMBOLS).find((name) => SYMBOLS[name].test(plain.trim()));
  if (sign) return sign;
  const bare = plain.normalize("NFD").replace(/([a-z])\p{M}+/gu, "$1").normalize("NFC");
  // 登 录 on a button is 登录 with a space for looks.
  return bare.replace(/[^\p{L}\p{N}]+/gu, " ").replace(/(?<=\p{Script=Han}) (?=\p{Script=Han})/gu, "").trim();
};

const tokensOf = (folded) => {
  const unified = folded.replace(MEANINGS, (phrase) => ` ${MEANING_OF.get(phrase)} `);
  const filtered = unified.replace(STOP_CHARACTERS, " ");
  const tokens = [];
  for (const [word] of filtered.matchAll(WORD)) {
    if (!CJK_RUN.test(word)) {
      if (!STOP_WORDS.has(word)) tokens.push(word);
    } else if (word.length <= 2) tokens.push(word);
    else for (let at = 0; at < word.length - 1; at += 1) tokens.push(word.slice(at, at + 2));
  }
  return tokens.length ? tokens : folded.split(" ").filter(Boolean);
};

const MAX_COMPARED = 400; // characters of a text that are compared; longer texts match nothing well
const wordsOf = (text) => {
  const folded = fold(text.slice(0, MAX_COMPARED));
  return { folded, tokens: tokensOf(folded) };
};

// Parse a query: its words, the kinds of element that it names, and its words without those.
const queryOf = (text) => {
  const whole = wordsOf(text);
  const kinds = new Set();
  const rest = whole.folded.replace(KINDS, (phrase) => {
    kinds.add(KIND_OF.get(phrase));
    return " ";
  }).replace(/ +/g, " ").trim();
  return { whole, kinds, rest: kinds.size ? wordsOf(rest) : whole };
};

const likeness = (one, other) => {
  if (one === other) return 1;
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short.length >= 4 && isLatin(short) && long.startsWith(short) ? 0.8 : 0;
};

const holds = (text, query) =>
  isLatin(query) ? ` ${text} `.includes(` ${query} `) : query !== "" && text.includes(query);

// 1 for equal texts, 0 for nothing in common; above 0.5 only if most of the query's words are present.
const similarity = (query, text) => {
  if (!query.tokens.length || !text.tokens.length) return 0;
  if (query.folded === text.folded) return 1;
  let found = 0;
  for (const token of query.tokens) found += Math.max(...text.tokens.map((other) => likeness(token, other)));
  const share = Math.min(1, found / text.tokens.length);
  const score = (found / query.tokens.length) ** 1.5 * (0.65 + 0.3 * share);
  if (!holds(text.folded, query.folded)) return score;
  return Math.max(score, 0.6 + 0.35 * (query.folded.length / text.folded.length));
};
