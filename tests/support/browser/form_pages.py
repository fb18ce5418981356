"""Pages with forms and lists, in English and Chinese, for tests of locators."""

from __future__ import annotations

HEAD = "<!doctype html><html><head><meta charset=utf-8>"

ENGLISH = f"""{HEAD}<title>Account</title><body>
<form role=search action=/s><input id=q type=search name=q placeholder="Search products"></form>
<nav><a id=home href=/>Home</a> <a id=news href=/news>Latest news</a>
 <a id=cart href=/cart aria-label="Shopping cart"><svg width=20 height=20></svg></a></nav>
<form id=f action=/done method=post>
 <p><label for=user>User name</label> <input id=user name=login></p>
 <p><label>Password <input id=pass type=password name=pw></label></p>
 <p><label for=mail>E-mail address</label> <input id=mail type=email></p>
 <p><input id=phone type=tel placeholder="Phone number"></p>
 <table><tr><td>Company</td><td><input id=company></td></tr>
  <tr><td>Street:</td><td><input id=street></td></tr></table>
 <p><label for=country>Country</label> <select id=country><option value="">Choose…</option>
  <option value=de>Germany</option><option value=fr>France</option></select></p>
 <p><label><input id=terms type=checkbox> I accept the terms of service</label></p>
 <p><label><input id=letter type=checkbox> Send me the newsletter</label></p>
 <fieldset><legend>Delivery</legend><label><input id=fast type=radio name=d value=fast> Express
  </label><label><input id=slow type=radio name=d value=slow> Standard</label></fieldset>
 <p><span id=l1>Date of birth</span> <input id=birth type=date aria-labelledby=l1></p>
 <p><textarea id=note aria-label="Your message"></textarea></p>
 <div id=rich contenteditable=true data-placeholder="Write a comment"></div>
 <p><label for=old>Old name</label> <input id=old disabled></p>
 <p><label for=fixed>Customer number</label> <input id=fixed readonly value=7></p>
 <button id=save type=button>Save draft</button> <button id=send>Create account</button>
 <button id=off disabled>Delete account</button>
 <input id=reset type=reset value="Clear form">
 <button id=x type=button>×</button>
</form>
<div hidden><button id=ghost>Download invoice</button></div>
<a id=help href=/help>Help and support</a> <a id=signin href=/in>Log in</a>
<span id=pressed style="cursor:pointer">Show details</span>
<img id=logo src=data:, alt="Company logo" onclick="1" width=10 height=10>
<a id=prev href=?p=1>‹</a> <a id=next href=?p=3 title="To the next page">›</a>
<button id=r1>Edit</button><button id=r2>Edit</button>
</body>"""

CHINESE = f"""{HEAD}<title>账户</title><body>
<form role=search><input id=q type=text placeholder="请输入商品名称">
 <button id=go>搜索</button></form>
<form id=f>
 <p><label for=user>用户名</label><input id=user></p>
 <p><label>登录密码<input id=pass type=password></label></p>
 <p><input id=mail placeholder="请输入邮箱地址"></p>
 <p><input id=mobile type=tel placeholder="请输入手机号码"></p>
 <p><input id=code placeholder="验证码"></p>
 <table><tr><td>公司名称</td><td><input id=company></td></tr>
  <tr><td>收货地址：</td>
  <td><textarea id=address></textarea></td></tr></table>
 <p><label for=city>所在城市</label>
  <select id=city><option>北京</option><option>上海</option></select></p>
 <p><label><input id=terms type=checkbox>我已阅读并同意服务条款</label></p>
 <p><label><input id=man type=radio name=g>男</label>
  <label><input id=woman type=radio name=g>女</label></p>
 <p><span id=l1>出生日期</span><input id=birth type=date aria-labelledby=l1></p>
 <div id=rich contenteditable=true aria-label="评论内容"></div>
 <button id=login>登 录</button><button id=register type=button>立即注册</button>
 <button id=ok type=button>ＯＫ</button>
 <button id=off disabled>提交订单</button>
</form>
<a id=forgot href=/f>忘记密码？</a><a id=next href=?p=2>下一页</a><a id=prev href=?p=0>上一页</a>
<a id=detail href=/d>查看详情</a><div id=basket style="cursor:pointer">加入购物车</div>
</body>"""

SHADOW = f"""{HEAD}<title>Parts</title><body><button id=first>Outer</button><my-box></my-box>
<button id=last>Save</button><iframe srcdoc="<meta charset=utf-8>
<label>Card holder <input id=holder></label>
<button id=pay>Pay now</button><button id=insave>Save</button>" width=400 height=100></iframe>
<script>
const box = document.querySelector("my-box").attachShadow({{mode: "open"}});
box.innerHTML = `<label>Nick name <input id=nick></label><button id=shsave>Save</button>
  <inner-box></inner-box>`;
box.querySelector("inner-box").attachShadow({{mode: "open"}}).innerHTML =
  `<input id=deep placeholder="Deep field"><a id=link href="#x">深处的链接</a>`;
</script></body>"""
