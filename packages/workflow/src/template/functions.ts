import type { Json } from '@thv/kernel/json'
import { htmlText, jsText, quoted, urlQueryText } from './escapes.ts'
import type { FunctionName } from './function-names.ts'
import type { Budget } from './limits.ts'
import { type PrintContext, sprintf } from './printf.ts'
import { TemplateError } from './template-error.ts'
import { compareText, isJsonObject, isList, isNothing, isTrue, jsonText, kindOf, memberOf, textOf, type Value } from './value.ts'

export type CallContext = PrintContext

/** All but `and` and `or`, which the evaluator does itself: they may not look at all of their arguments. The counts were checked at load. */
export type EagerFunction = Exclude<FunctionName, 'and' | 'or'>

type Implementation = (values: readonly Value[], context: CallContext) => Value

export const FUNCTIONS: Readonly<Record<EagerFunction, Implementation>> = {
  not: ([value]) => !isTrue(value),
  eq: ([first, ...others], context) => others.some((other) => isEqual(first, other, context)),
  ne: ([a, b], context) => !isEqual(a, b, context),
  lt: ([a, b], context) => order(a, b, context) < 0,
  le: ([a, b], context) => order(a, b, context) <= 0,
  gt: ([a, b], context) => order(a, b, context) > 0,
  ge: ([a, b], context) => order(a, b, context) >= 0,
  len: ([value], context) => length(value, context),
  index: ([value, ...indexes], context) => indexes.reduce<Value>((item, index) => indexed(item, index, context), indexable(value, context)),
  slice: ([value, ...indexes], context) => sliced(value, indexes, context),
  print: (values, context) => made(printed(values, context), context),
  println: (values, context) => made(`${values.map((value) => text(value, context)).join(' ')}\n`, context),
  printf: ([format, ...values], context) => sprintf(textArgument(format, 'printf', context), values, context),
  html: (values, context) => made(htmlText(read(printed(values, context), context)), context),
  js: (values, context) => made(jsText(read(printed(values, context), context)), context),
  urlquery: (values, context) => made(urlQueryText(read(printed(values, context), context)), context),
  json: ([value], { budget, at }) => jsonText(value, budget, at),
  quote: ([value], context) => made(quoted(read(textArgument(value, 'quote', context), context), '"', false), context),
  fromJson: ([value], context) => parsed(textArgument(value, 'fromJson', context), context),
}

function made(result: string, { budget, at }: CallContext): string {
  return budget.make(result, at)
}

function read(value: string, { budget, at }: CallContext): string {
  budget.read(value, at)
  return value
}

function text(value: Value, { budget, at }: { budget: Budget; at: number }): string {
  return textOf(value, budget, at)
}

/** As Go's Sprint: a space between two values that are both no strings. */
function printed(values: readonly Value[], context: CallContext): string {
  let out = ''
  for (const [index, value] of values.entries()) {
    const needsSpace = index > 0 && typeof value !== 'string' && typeof values[index - 1] !== 'string'
    out += (needsSpace ? ' ' : '') + text(value, context)
  }
  return out
}

function textArgument(value: Value, name: string, context: CallContext): string {
  if (typeof value === 'string') return value
  throw wrong(`${name} needs a string, not ${kindOf(value)}`, context)
}

function isEqual(a: Value, b: Value, context: CallContext): boolean {
  if (isNothing(a) || isNothing(b)) return isNothing(a) && isNothing(b)
  if (typeof a !== typeof b || typeof a === 'object') throw wrong(`cannot compare ${kindOf(a)} with ${kindOf(b)}`, context)
  if (typeof a === 'string') read(a, context)
  return a === b
}

function order(a: Value, b: Value, context: CallContext): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'string' && typeof b === 'string') return compareText(read(a, context), b)
  throw wrong(`cannot compare ${kindOf(a)} with ${kindOf(b)}`, context)
}

/** Texts are counted in bytes, as in Go. */
function length(value: Value, context: CallContext): number {
  if (typeof value === 'string') return Buffer.byteLength(read(value, context))
  if (isList(value)) return value.length
  if (isJsonObject(value)) return Object.keys(value).length
  throw wrong(`len needs a string, a list or an object, not ${kindOf(value)}`, context)
}

function indexable(value: Value, context: CallContext): Value {
  if (isNothing(value)) throw wrong(`index needs a string, a list or an object, not ${kindOf(value)}`, context)
  return value
}

function indexed(item: Value, index: Value, context: CallContext): Value {
  if (isJsonObject(item)) {
    if (typeof index !== 'string') throw wrong(`the index of an object must be a string, not ${kindOf(index)}`, context)
    return memberOf(item, index)
  }
  if (isList(item)) return item[position(index, item.length - 1, context)]
  if (typeof item === 'string') {
    const bytes = Buffer.from(read(item, context))
    return bytes[position(index, bytes.length - 1, context)]
  }
  throw wrong(`cannot index ${kindOf(item)}`, context)
}

function position(index: Value, last: number, context: CallContext): number {
  if (typeof index !== 'number' || !Number.isInteger(index)) throw wrong(`an index must be a whole number, not ${kindOf(index)}`, context)
  if (index < 0 || index > last) throw wrong(`index out of range: ${index}`, context)
  return index
}

function sliced(value: Value, indexes: readonly Value[], context: CallContext): Value {
  const isText = typeof value === 'string'
  if (!isText && !isList(value)) throw wrong(`slice needs a string or a list, not ${kindOf(value)}`, context)
  if (isText && indexes.length === 3) throw wrong('a string is sliced with two indexes at most', context)
  const items = isText ? Buffer.from(read(value, context)) : value
  const [from = 0, to = items.length, limit = items.length] = indexes.map((index) => position(index, items.length, context))
  if (from > to || to > limit) throw wrong(`bad slice: ${from} to ${to}`, context)
  if (isText) return made(Buffer.from(items.slice(from, to) as Buffer).toString(), context)
  for (let count = from; count < to; count += 1_024) context.budget.step(context.at)
  return items.slice(from, to) as readonly Json[]
}

function parsed(source: string, context: CallContext): Value {
  context.budget.reserve(Buffer.byteLength(source), context.at)
  try {
    return JSON.parse(source) as Json
  } catch {
    throw wrong('fromJson needs a text that is JSON', context)
  }
}

function wrong(message: string, { at }: CallContext): TemplateError {
  return new TemplateError('type', message, at)
}
