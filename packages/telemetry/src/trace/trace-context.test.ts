import { describe, expect, it } from 'vitest'
import { createTraceStarter, formatTraceparent, parseTraceparent, parseTracestate } from './trace-context.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

describe('traceparent', () => {
  it.each([
    ['sampled', `00-${TRACE}-${SPAN}-01`, true],
    ['not sampled', `00-${TRACE}-${SPAN}-00`, false],
    ['other flags', `00-${TRACE}-${SPAN}-03`, true],
    ['a later version with more', `cc-${TRACE}-${SPAN}-01-what-comes`, true],
  ])('%s', (_name, text, sampled) => {
    expect(parseTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, sampled })
  })

  it.each([
    ['nothing', undefined],
    ['a number', 7],
    ['version ff', `ff-${TRACE}-${SPAN}-01`],
    ['upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['no trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['no span', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['version 00 with more', `00-${TRACE}-${SPAN}-01-x`],
    ['a short id', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a long text', `cc-${TRACE}-${SPAN}-01-${'x'.repeat(1_000)}`],
    ['another line', `00-${TRACE}-${SPAN}-01\r\nX-Evil: 1`],
  ])('rejects %s', (_name, text) => {
    expect(parseTraceparent(text)).toBeUndefined()
  })

  it('is written as it is read', () => {
    const trace = createTraceStarter({ rate: 1, trustsParent: false })(undefined, undefined)
    expect(parseTraceparent(formatTraceparent(trace))).toEqual({ traceId: trace.traceId, spanId: trace.spanId, sampled: true })
  })

  it('bounds tracestate', () => {
    expect(parseTracestate('a=1,b=2')).toBe('a=1,b=2')
    expect(parseTracestate('a=\r\n')).toBeUndefined()
    expect(parseTracestate('x'.repeat(513))).toBeUndefined()
  })
})

describe('sampling', () => {
  const parent = (sampled: boolean) => ({ traceId: TRACE, spanId: SPAN, sampled })

  it('continues the trace of the client under a span of its own', () => {
    const trace = createTraceStarter({ rate: 1, trustsParent: false })(parent(true), 'a=1')
    expect(trace).toMatchObject({ traceId: TRACE, parentSpanId: SPAN, sampled: true, state: 'a=1' })
    expect(trace.spanId).not.toBe(SPAN)
  })

  it.each([
    ['no parent, below the rate', { rate: 0.5, random: 0.4 }, undefined, true],
    ['no parent, above the rate', { rate: 0.5, random: 0.5 }, undefined, false],
    ['a parent that is not sampled', { rate: 1, random: 0 }, parent(false), false],
    ['a sampled parent cannot raise the rate', { rate: 0, random: 0 }, parent(true), false],
    ['a trusted parent decides', { rate: 0, random: 0, trusts: true }, parent(true), true],
    ['a trusted parent that is not sampled', { rate: 1, random: 0, trusts: true }, parent(false), false],
  ])('%s', (_name, { rate, random, trusts = false }: { rate: number; random: number; trusts?: boolean }, given, sampled) => {
    expect(createTraceStarter({ rate, trustsParent: trusts, random: () => random })(given, undefined).sampled).toBe(sampled)
  })

  it('makes ids that are valid and new', () => {
    const start = createTraceStarter({ rate: 1, trustsParent: false })
    const ids = new Set(Array.from({ length: 2_000 }, () => start(undefined, undefined).traceId))
    expect(ids.size).toBe(2_000)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
  })
})
