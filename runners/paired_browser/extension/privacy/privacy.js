// Show the text of the browser's language.
const wanted = chrome.i18n.getUILanguage().startsWith("zh") ? "zh-CN" : "en";
for (const article of document.querySelectorAll("article")) article.hidden = article.lang !== wanted;
document.documentElement.lang = wanted;
document.title = document.querySelector(`article[lang=${wanted}] h1`).textContent;
