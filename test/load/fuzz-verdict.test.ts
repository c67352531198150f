import { describe, expect, it } from 'vitest'
import type { FuzzCase } from './fuzz-case.ts'
import { SEEDS } from './fuzz-corpus.ts'
import { verdictOf } from './fuzz-verdict.ts'
import { parseAnswers } from './http-answers.ts'
import type { Exchange } from './raw-exchange.ts'

const [seed] = SEEDS
if (seed === undefined) throw new Error('the corpus is empty')
const wait = { pieces: [], expected: 1, isHead: false, manner: 'wait' } as const
const unchanged: FuzzCase = { seed, changes: [], requestId: 7, transmission: wait }
const changed: FuzzCase = { ...unchanged, changes: ['a batch'] }

function answered(status: number, body: string, headers = ''): Exchange {
  const wire = `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`
  return { outcome: 'answered', ...parseAnswers(Buffer.from(wire), false) }
}

const coded = (code: number, message: string) => JSON.stringify({ jsonrpc: '2.0', id: 7, error: { code, message } })
const result = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, result: {} })

describe('verdictOf', () => {
  it.each([
    ['no answer', changed, { outcome: 'hung', answers: [], garbage: undefined }, 'neither answered nor closed'],
    ['500', changed, answered(500, coded(-32603, 'Internal error')), 'status 500'],
    ['501', changed, answered(501, '{}'), 'status 501'],
    ['503 without a code', changed, answered(503, '{"error":"busy"}', 'Retry-After: 1\r\n'), 'without a coded body'],
    ['503 without a body', changed, answered(503, '', 'Retry-After: 1\r\n'), 'without a coded body'],
    ['502 with the code of 503', changed, answered(502, coded(503, 'Backend unavailable')), 'without a coded body'],
    ['503 without Retry-After', changed, answered(503, coded(503, 'Backend unavailable')), 'without Retry-After'],
    ['a stack', changed, answered(400, '{"error":"x\\n"}\n    at y (z.js:1)'), 'shows the inside'],
    ['broken JSON', changed, answered(400, '{"error'), 'declared as JSON'],
    [
      'bytes of another answer',
      changed,
      { outcome: 'answered', ...parseAnswers(Buffer.from('x HTTP/1.1 200 OK\r\n\r\n'), false) },
      'no HTTP answer',
    ],
    ['a result for somebody else', changed, answered(200, result(8)), 'another id'],
    ['a wrong status', unchanged, answered(400, coded(-32600, 'Invalid request')), 'answered with 400'],
    ['a closed connection', unchanged, { outcome: 'closed', answers: [], garbage: undefined }, 'not answered but closed'],
  ] as const)('finds %s', (_what, fuzz, exchange, problem) => expect(verdictOf(fuzz, exchange)).toContain(problem))

  it.each([
    ['the right result', unchanged, answered(200, result(7))],
    ['a refusal', changed, answered(400, coded(-32700, 'Parse error'))],
    ['a coded failure', changed, answered(503, coded(503, 'Backend unavailable: it is being started'), 'Retry-After: 2\r\n')],
    ['an answer to HEAD', { ...changed, transmission: { ...wait, isHead: true } }, answered(503, '', 'Retry-After: 2\r\n')],
    ['an end of the connection', changed, { outcome: 'closed', answers: [], garbage: undefined }],
  ] as const)('is content with %s', (_what, fuzz, exchange) => expect(verdictOf(fuzz, exchange)).toBeUndefined())
})
