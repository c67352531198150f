import type { FuzzRequest } from './fuzz-request.ts'
import type { Prng } from './prng.ts'

/** A change of one request. It may find nothing to change. */
export interface Mutation {
  readonly name: string
  readonly weight: number
  apply(request: FuzzRequest, random: Prng): void
}

/** JSON texts in place of an id: every type, and the corners of the allowed ones. */
const IDS = ['null', 'true', '0', '-1', '1.5', '1e3', '1e400', '9007199254740993', '""', '"a"', '"\\ud800"', '"\\u0000"', '{}', '[]', '[1]']
const VALUES = ['null', 'true', '7', '"text"', '[]', '{}', '[[[]]]', '{"__proto__":{"x":1}}', '"\\ud83d"', '1e999', '-0']
const METHODS = [
  '""',
  '"tools/call"',
  '"initialize"',
  '"ping"',
  '"rpc.x"',
  '5',
  'null',
  '"\\u0000"',
  '"notifications/cancelled"',
  '"toolſ/call"',
]
const VERSIONS = ['2026-07-28', '2025-11-25', '2024-11-05', '1999-01-01', '', 'x', '2026-07-28 ', '9'.repeat(500)]

/** Bytes that are no UTF-8: an overlong form, a lone continuation, a surrogate, a start without its end, one that is never used. */
const NOT_UTF8 = [[0xc0, 0x80], [0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xff]].map((bytes) => Buffer.from(bytes))

export const BODY_MUTATIONS: readonly Mutation[] = [
  member('id of another type', 8, 'id', IDS),
  member('method of another kind', 4, 'method', METHODS),
  member('params of another type', 4, 'params', VALUES),
  member('another jsonrpc', 3, 'jsonrpc', ['"1.0"', '2.0', 'null', '"2.0 "']),
  inText('a member twice', 3, (text, random) =>
    text.replace('{', `{"${random.pick(['id', 'method', 'jsonrpc', 'params'])}":${random.pick(VALUES)},`),
  ),
  inText('a member less', 4, (text, random) => {
    const { [random.pick(['id', 'method', 'jsonrpc', 'params'])]: _, ...rest } = parsed(text)
    return JSON.stringify(rest)
  }),
  inText('result and error', 2, (text, random) => text.replace('{', `{"${random.pick(['result', 'error'])}":${random.pick(VALUES)},`)),
  inText('another envelope', 6, (text, random) => withMeta(text, random)),
  inText('deep nesting', 2, (text, random) => {
    const depth = random.pick([100, 127, 129, 1_000, 50_000])
    return text.replace('"params":{', `"params":{"deep":${'['.repeat(depth)}${']'.repeat(depth)},`)
  }),
  inText('a batch', 3, (text, random) =>
    random.pick([`[${text}]`, `[${text},${text}]`, '[]', '[[]]', ` \n[${text}]`, `\u00a0[${text}]`, '[1,2,3]']),
  ),
  inText('white space and marks', 2, (text, random) =>
    random.pick([`\ufeff${text}`, ` \t\r\n${text}\n`, `${text}${text}`, `${text}x`, `\u2028${text}`]),
  ),
  inText('no object', 2, (_text, random) =>
    random.pick(['', ' ', 'null', '1', '"x"', 'true', 'NaN', '{', '{}', '\u0000', 'undefined', '{"a":}']),
  ),
  inText('a long text', 2, (text, random) =>
    text.replace('"params":{', `"params":{"long":"${'x'.repeat(random.pick([1_000, 70_000, 400_000]))}",`),
  ),
  inText('many members', 1, (text) =>
    text.replace('"params":{', `"params":{${Array.from({ length: 3_000 }, (_, n) => `"m${n}":${n}`).join()},`),
  ),
  inBytes('over the size limit', 0.1, () => Buffer.alloc(8 * 1024 * 1024 + 1, 0x20)),
  inBytes('flipped bits', 8, (body, random) => {
    for (let flips = 1 + random.below(8); flips > 0; flips--) {
      const at = random.below(body.length)
      body[at] = (body[at] ?? 0) ^ (1 << random.below(8))
    }
    return body
  }),
  inBytes('cut off', 4, (body, random) => body.subarray(0, random.below(body.length))),
  inBytes('not UTF-8', 3, (body, random) => {
    const at = random.below(body.length)
    return Buffer.concat([body.subarray(0, at), random.pick(NOT_UTF8), body.subarray(at)])
  }),
  inBytes('a part twice', 2, (body, random) => {
    const at = random.below(body.length)
    return Buffer.concat([body.subarray(0, at), body.subarray(random.below(body.length))])
  }),
  inBytes('noise', 2, (_body, random) => Buffer.from(Array.from({ length: 1 + random.below(300) }, () => random.below(256)))),
]

function inBytes(name: string, weight: number, change: (body: Buffer, random: Prng) => Buffer): Mutation {
  return {
    name,
    weight,
    apply(request, random) {
      if (request.body !== undefined && request.body.length > 0) request.body = change(Buffer.from(request.body), random)
    },
  }
}

function inText(name: string, weight: number, change: (text: string, random: Prng) => string): Mutation {
  return inBytes(name, weight, (body, random) => Buffer.from(change(body.toString('utf8'), random)))
}

const DEEP = '['.repeat(500)
const PLACE = '\u0001'

/** Puts a JSON text in place of a member of the message, letter for letter. */
function member(name: string, weight: number, key: string, texts: readonly string[]): Mutation {
  return inText(name, weight, (text, random) => {
    const message = { ...parsed(text), [key]: PLACE }
    return JSON.stringify(message).replace(JSON.stringify(PLACE), () => random.pick(texts))
  })
}

function withMeta(text: string, random: Prng): string {
  const message = parsed(text)
  const params = isObject(message['params']) ? message['params'] : {}
  const meta = isObject(params['_meta']) ? { ...params['_meta'] } : {}
  const key = `io.modelcontextprotocol/${random.pick(['protocolVersion', 'clientCapabilities', 'clientInfo', 'logLevel'])}`
  if (random.chance(0.3)) delete meta[key]
  else meta[key] = random.chance(0.5) ? random.pick(VERSIONS) : random.pick<unknown>([null, 5, [], {}, { name: 3 }, 'debug'])
  return JSON.stringify({ ...message, params: { ...params, _meta: random.chance(0.1) ? random.pick<unknown>([null, [], 'x']) : meta } })
}

function parsed(text: string): Record<string, unknown> {
  if (text.includes(DEEP)) return {} // could be read, but not written again
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {} // another mutation came first
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
