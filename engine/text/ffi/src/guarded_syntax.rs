//! A template's syntax tree, checked to be small enough for recursion, and copied with `value_guard`'s filters around
//! whatever makes or takes apart a value that can hold others.

use minijinja::machinery::ast::*;
use minijinja::machinery::{Span, Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::value_guard::{DATA, MADE, TEXT};

/// Real templates have up to 40 tokens in a tag, and 4 `elif`. Each can add a level to the syntax tree.
const MAX_TAG_TOKENS: usize = 1000;
const MAX_ELIFS: usize = 200;
/// These look at no more than the top of what they get, or pay for what they write, and make no lists.
const CHEAP_FILTERS: [&str; 12] =
    ["count", "d", "default", "first", "last", "length", "lower", "safe", "string", "tojson", "trim", "upper"];

/// Errors of the tokenizer are left to the parser, which says where they are.
pub fn check_size(source: &str) -> Result<(), String> {
    let (mut num_tokens, mut num_elifs) = (0, 0);
    for (token, span) in tokenize(source, false, SyntaxConfig::default()).map_while(Result::ok) {
        match token {
            Token::BlockStart | Token::VariableStart | Token::TemplateData(_) => num_tokens = 0,
            Token::Ident("elif") => num_elifs += 1,
            _ => {}
        }
        num_tokens += 1;
        if num_tokens > MAX_TAG_TOKENS {
            return Err(format!(
                "line {}: got a tag of more than {MAX_TAG_TOKENS} words and signs, expected at most so many",
                span.start_line
            ));
        }
        if num_elifs > MAX_ELIFS {
            return Err(format!(
                "line {}: got more than {MAX_ELIFS} 'elif', expected at most so many",
                span.start_line
            ));
        }
    }
    Ok(())
}

pub fn guarded<'a>(stmt: &Stmt<'a>) -> Stmt<'a> {
    match stmt {
        Stmt::Template(s) => Stmt::Template(Spanned::new(Template { children: body(&s.children) }, s.span())),
        Stmt::EmitExpr(s) => Stmt::EmitExpr(Spanned::new(EmitExpr { expr: expr(&s.expr) }, s.span())),
        // As an expression it passes the formatter, which counts.
        Stmt::EmitRaw(s) => {
            let text = Expr::Const(Spanned::new(Const { value: s.raw.into() }, s.span()));
            Stmt::EmitExpr(Spanned::new(EmitExpr { expr: text }, s.span()))
        }
        Stmt::ForLoop(s) => Stmt::ForLoop(Spanned::new(
            ForLoop {
                target: copy(&s.target),
                iter: expr(&s.iter),
                filter_expr: s.filter_expr.as_ref().map(expr),
                recursive: s.recursive,
                body: body(&s.body),
                else_body: body(&s.else_body),
            },
            s.span(),
        )),
        Stmt::IfCond(s) => Stmt::IfCond(Spanned::new(
            IfCond { expr: expr(&s.expr), true_body: body(&s.true_body), false_body: body(&s.false_body) },
            s.span(),
        )),
        Stmt::WithBlock(s) => {
            let assignments = s.assignments.iter().map(|(target, value)| (copy(target), stored(target, value)));
            let copied = WithBlock { assignments: assignments.collect(), body: body(&s.body) };
            Stmt::WithBlock(Spanned::new(copied, s.span()))
        }
        Stmt::Set(s) => {
            Stmt::Set(Spanned::new(Set { target: copy(&s.target), expr: stored(&s.target, &s.expr) }, s.span()))
        }
        Stmt::SetBlock(s) => Stmt::SetBlock(Spanned::new(
            SetBlock {
                target: copy(&s.target),
                filter: s.filter.as_ref().map(|filter| stored(&s.target, filter)),
                body: body(&s.body),
            },
            s.span(),
        )),
        Stmt::AutoEscape(s) => {
            Stmt::AutoEscape(Spanned::new(AutoEscape { enabled: expr(&s.enabled), body: body(&s.body) }, s.span()))
        }
        Stmt::FilterBlock(s) => Stmt::FilterBlock(Spanned::new(
            FilterBlock { filter: expr(&s.filter), filter_span: s.filter_span, body: body(&s.body) },
            s.span(),
        )),
        Stmt::Macro(s) => Stmt::Macro(macro_of(s)),
        Stmt::CallBlock(s) => Stmt::CallBlock(Spanned::new(
            CallBlock { call: call(&s.call), call_expr_span: s.call_expr_span, macro_decl: macro_of(&s.macro_decl) },
            s.span(),
        )),
        Stmt::Continue(s) => Stmt::Continue(Spanned::new(Continue, s.span())),
        Stmt::Break(s) => Stmt::Break(Spanned::new(Break, s.span())),
        Stmt::Do(s) => Stmt::Do(Spanned::new(Do { call: call(&s.call) }, s.span())),
    }
}

fn body<'a>(statements: &[Stmt<'a>]) -> Vec<Stmt<'a>> {
    statements.iter().map(guarded).collect()
}

fn macro_of<'a>(s: &Spanned<Macro<'a>>) -> Spanned<Macro<'a>> {
    let copied = Macro {
        name: s.name,
        args: s.args.iter().map(copy).collect(),
        defaults: s.defaults.iter().map(expr).collect(),
        body: body(&s.body),
    };
    Spanned::new(copied, s.span())
}

/// A value for a variable, or for a namespace, which must not come to hold itself.
fn stored<'a>(target: &Expr<'a>, value: &Expr<'a>) -> Expr<'a> {
    if names_attribute(target) { data(value) } else { expr(value) }
}

fn names_attribute(target: &Expr) -> bool {
    match target {
        Expr::GetAttr(_) => true,
        Expr::List(list) => list.items.iter().any(names_attribute),
        _ => false,
    }
}

/// The target of an assignment as it is.
fn copy<'a>(target: &Expr<'a>) -> Expr<'a> {
    match target {
        Expr::GetAttr(e) => Expr::GetAttr(Spanned::new(GetAttr { expr: copy(&e.expr), name: e.name }, e.span())),
        Expr::List(e) => Expr::List(Spanned::new(List { items: e.items.iter().map(copy).collect() }, e.span())),
        other => expr(other),
    }
}

fn wrapped<'a>(name: &'static str, value: Expr<'a>, span: Span) -> Expr<'a> {
    Expr::Filter(Spanned::new(Filter { name, expr: Some(value), args: Vec::new() }, span))
}

fn made<'a>(value: Expr<'a>, span: Span) -> Expr<'a> {
    wrapped(MADE, value, span)
}

fn text<'a>(value: &Expr<'a>) -> Expr<'a> {
    wrapped(TEXT, expr(value), value.span())
}

/// An operand or argument; a constant is as small as its source.
fn data<'a>(value: &Expr<'a>) -> Expr<'a> {
    if is_constant(value) { expr(value) } else { wrapped(DATA, expr(value), value.span()) }
}

fn is_constant(value: &Expr) -> bool {
    match value {
        Expr::Const(_) => true,
        Expr::List(list) => list.items.iter().all(is_constant),
        Expr::Tuple(tuple) => tuple.items.iter().all(is_constant),
        Expr::Map(map) => map.keys.iter().chain(&map.values).all(is_constant),
        _ => false,
    }
}

fn expr<'a>(e: &Expr<'a>) -> Expr<'a> {
    let span = e.span();
    match e {
        Expr::Var(e) => Expr::Var(Spanned::new(Var { id: e.id }, span)),
        Expr::Const(e) => Expr::Const(Spanned::new(Const { value: e.value.clone() }, span)),
        Expr::Slice(e) => {
            let [start, stop, step] = [&e.start, &e.stop, &e.step].map(|part| part.as_ref().map(expr));
            made(Expr::Slice(Spanned::new(Slice { expr: text(&e.expr), start, stop, step }, span)), span)
        }
        Expr::UnaryOp(e) => {
            let op = match e.op {
                UnaryOpKind::Not => UnaryOpKind::Not,
                UnaryOpKind::Neg => UnaryOpKind::Neg,
            };
            Expr::UnaryOp(Spanned::new(UnaryOp { op, expr: expr(&e.expr) }, span))
        }
        Expr::BinOp(e) => binary(e),
        Expr::Compare(e) => {
            let ops = e.ops.iter().map(|each| CompareOp { op: each.op, expr: data(&each.expr) }).collect();
            Expr::Compare(Spanned::new(Compare { expr: data(&e.expr), ops }, span))
        }
        Expr::IfExpr(e) => Expr::IfExpr(Spanned::new(
            IfExpr {
                test_expr: expr(&e.test_expr),
                true_expr: expr(&e.true_expr),
                false_expr: e.false_expr.as_ref().map(expr),
            },
            span,
        )),
        Expr::Filter(e) => filter(e),
        Expr::Test(e) => {
            let tested = if e.args.is_empty() { expr(&e.expr) } else { data(&e.expr) };
            Expr::Test(Spanned::new(Test { name: e.name, expr: tested, args: arguments(&e.args, data) }, span))
        }
        Expr::GetAttr(e) => Expr::GetAttr(Spanned::new(GetAttr { expr: expr(&e.expr), name: e.name }, span)),
        Expr::GetItem(e) => {
            Expr::GetItem(Spanned::new(GetItem { expr: text(&e.expr), subscript_expr: data(&e.subscript_expr) }, span))
        }
        Expr::Call(e) => made(Expr::Call(call(e)), span),
        Expr::List(s) => literal(e, Expr::List(Spanned::new(List { items: s.items.iter().map(expr).collect() }, span))),
        Expr::Tuple(s) => {
            literal(e, Expr::Tuple(Spanned::new(Tuple { items: s.items.iter().map(expr).collect() }, span)))
        }
        Expr::Map(s) => {
            let (keys, values) = (s.keys.iter().map(expr).collect(), s.values.iter().map(expr).collect());
            literal(e, Expr::Map(Spanned::new(Map { keys, values }, span)))
        }
    }
}

fn literal<'a>(original: &Expr<'a>, copied: Expr<'a>) -> Expr<'a> {
    if is_constant(original) { copied } else { made(copied, original.span()) }
}

fn binary<'a>(e: &Spanned<BinOp<'a>>) -> Expr<'a> {
    use BinOpKind::*;
    let operation = |operand: fn(&Expr<'a>) -> Expr<'a>| {
        Expr::BinOp(Spanned::new(BinOp { op: e.op, left: operand(&e.left), right: operand(&e.right) }, e.span()))
    };
    match e.op {
        In => operation(data),
        Eq | Ne | Lt | Lte | Gt | Gte if !is_constant(&e.left) && !is_constant(&e.right) => operation(data),
        // The copies of a constant that is repeated take no space until they are looked at.
        Add | Mul => made(operation(expr), e.span()),
        _ => operation(expr),
    }
}

fn filter<'a>(e: &Spanned<Filter<'a>>) -> Expr<'a> {
    let is_cheap = CHEAP_FILTERS.contains(&e.name);
    let operand: fn(&Expr<'a>) -> Expr<'a> = if is_cheap { expr } else { data };
    let copied = Filter { name: e.name, expr: e.expr.as_ref().map(operand), args: arguments(&e.args, operand) };
    let copied = Expr::Filter(Spanned::new(copied, e.span()));
    if is_cheap { copied } else { made(copied, e.span()) }
}

fn call<'a>(e: &Spanned<Call<'a>>) -> Spanned<Call<'a>> {
    let copied = match &e.expr {
        Expr::GetAttr(method) => {
            // Counting compares what the list holds.
            let receiver = if method.name == "count" { data(&method.expr) } else { expr(&method.expr) };
            let callee = Expr::GetAttr(Spanned::new(GetAttr { expr: receiver, name: method.name }, method.span()));
            Call { expr: callee, args: arguments(&e.args, data) }
        }
        callee => Call { expr: expr(callee), args: arguments(&e.args, expr) },
    };
    Spanned::new(copied, e.span())
}

fn arguments<'a>(args: &[CallArg<'a>], operand: fn(&Expr<'a>) -> Expr<'a>) -> Vec<CallArg<'a>> {
    let copy = |arg: &CallArg<'a>| match arg {
        CallArg::Pos(value) => CallArg::Pos(operand(value)),
        CallArg::Kwarg(name, value) => CallArg::Kwarg(name, operand(value)),
        CallArg::PosSplat(value) => CallArg::PosSplat(operand(value)),
        CallArg::KwargSplat(value) => CallArg::KwargSplat(operand(value)),
    };
    args.iter().map(copy).collect()
}
