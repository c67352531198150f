import { TestClock } from '@thv/kernel/clock'
import { describe, expect, it, vi } from 'vitest'
import type { JsonObject } from '../json-rpc.ts'
import { clientContext } from './client-context.ts'
import { answerInput } from './input-rounds.ts'
import type { ClientHandlers } from './mcp-client.ts'

const PARAMS = { name: 'x', arguments: { a: 1 } }
const ASK = { method: 'elicitation/create', params: { message: 'Who?' } }
const DONE = { resultType: 'complete', content: [] }

describe('answerInput', () => {
  it('answers each round by itself and echoes the state byte for byte, also an empty one', async () => {
    const state = ' {"a": 1}\\ü '
    const { sent, result } = run([ask({ one: ASK }, state), ask({ two: { method: 'roots/list' } }, ''), ask({ three: ASK }), DONE])
    expect(await result).toBe(DONE)
    expect(sent).toEqual([
      PARAMS,
      { ...PARAMS, inputResponses: { one: { said: { message: 'Who?' } } }, requestState: state },
      { ...PARAMS, inputResponses: { two: { roots: {} } }, requestState: '' },
      { ...PARAMS, inputResponses: { three: { said: { message: 'Who?' } } } },
    ])
  })

  it('paces rounds that only put it off, and gives up', async () => {
    const { clock, sent, result } = run(Array.from({ length: 20 }, () => ({ resultType: 'input_required', requestState: 's' })))
    const outcome = expect(result).rejects.toMatchObject({ code: 'mcp_limit', message: expect.stringContaining('put the request off') })
    await clock.advance(0)
    expect(sent).toHaveLength(1)
    await clock.advance(100)
    expect(sent.at(-1)).toEqual({ ...PARAMS, requestState: 's' })
    await clock.advance(60_000)
    await outcome
    expect(sent).toHaveLength(6)
  })

  it('limits the number of rounds', async () => {
    const { result, sent } = run(Array.from({ length: 20 }, () => ask({ one: ASK }, 's')))
    await expect(result).rejects.toMatchObject({ code: 'mcp_limit' })
    expect(sent).toHaveLength(11)
  })

  it.each([
    ['neither question nor state', { resultType: 'input_required' }],
    ['a state that is no text', ask({}, 7)],
    ['questions that are no object', { resultType: 'input_required', inputRequests: [] }],
    ['an unknown question', ask({ one: { method: 'tools/list' } })],
    ['a question that was not offered', ask({ one: { method: 'sampling/createMessage' } })],
    ['a question that is none', ask({ one: 'Who?' })],
  ])('refuses %s', async (_title, first) => {
    await expect(run([first]).result).rejects.toMatchObject({ code: 'backend_protocol_error' })
  })

  it('refuses questions where there may be none, and too many at once', async () => {
    await expect(run([ask({ one: ASK })], { method: 'tools/list' }).result).rejects.toMatchObject({ code: 'backend_protocol_error' })
    const many = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`q${i}`, ASK]))
    await expect(run([ask(many)]).result).rejects.toMatchObject({ code: 'mcp_limit' })
  })

  it('fails with what a handler failed with', async () => {
    const handlers = { elicitation: () => Promise.reject(new Error('no terminal')) }
    await expect(run([ask({ one: ASK })], { handlers }).result).rejects.toThrow('no terminal')
  })

  it('sends nothing more once it is aborted', async () => {
    const controller = new AbortController()
    const { sent, result } = run([{ resultType: 'input_required', requestState: 's' }], { signal: controller.signal })
    await vi.waitFor(() => expect(sent).toHaveLength(1), 10_000)
    controller.abort(new Error('enough'))
    await expect(result).rejects.toThrow('enough')
    expect(sent).toHaveLength(1)
  })
})

function ask(inputRequests: JsonObject, requestState?: unknown): JsonObject {
  return { resultType: 'input_required', inputRequests, ...(requestState !== undefined && { requestState }) }
}

function run(results: readonly JsonObject[], options: { method?: string; handlers?: ClientHandlers; signal?: AbortSignal } = {}) {
  const clock = new TestClock()
  const own = { elicitation: (params: JsonObject) => ({ said: params }), roots: (params: JsonObject) => ({ roots: params }) }
  const { method = 'tools/call', handlers = own, signal = new AbortController().signal } = options
  const sent: JsonObject[] = []
  const send = async (params: JsonObject) => {
    sent.push(params)
    return results[sent.length - 1] ?? DONE
  }
  const context = clientContext({ clientInfo: { name: 'x', version: '1' }, clock })
  const result = send(PARAMS).then((first) => answerInput(first, { context, method, params: PARAMS, handlers, signal, send }))
  result.catch(() => {})
  return { clock, sent, result }
}
