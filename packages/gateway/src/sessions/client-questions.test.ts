import { TestClock } from '@thv/kernel/clock'
import type { RequestId } from '@thv/mcp/json-rpc'
import { type ParsedNotification, type ParsedRequest, type ParsedResponse, parseText } from '@thv/mcp/parse-body'
import { describe, expect, it } from 'vitest'
import type { Outlet } from '../streams/session-streams.ts'
import { type Asker, ClientQuestions } from './client-questions.ts'

const ASK_MS = 60_000

describe('ClientQuestions', () => {
  it('asks under an id of its own, and brings the answer to the server that asked, under its id', () => {
    const { questions, sent, asker } = started()
    const [one, other] = [asker(), asker()]
    expect(questions.ask(one, question(7), false)).toBe(true)
    expect(questions.ask(other, question(7), false)).toBe(true)
    const ids = sent.map((text) => (JSON.parse(text) as { id: string }).id)
    expect(new Set([...ids, 7]).size).toBe(3)
    expect(questions.answered(answer(ids[1] ?? ''))).toBe(true)
    expect(one.responses).toEqual([])
    expect(other.responses).toEqual([{ id: 7, text: expect.stringContaining('"roots":[]') }])
    expect(questions.size).toBe(1)
  })

  it('takes an answer once, and none that was not asked for', () => {
    const { questions, sent, asker } = started()
    const server = asker()
    questions.ask(server, question(1), false)
    const { id } = JSON.parse(sent[0] ?? '') as { id: string }
    expect(questions.answered(answer('made-up'))).toBe(false)
    expect(questions.answered(answer(id))).toBe(true)
    expect(questions.answered(answer(id))).toBe(false)
    expect(server.responses).toHaveLength(1)
  })

  it('cannot ask a client without a stream, unless the question may wait', () => {
    const { questions, waiting, asker } = started({ isConnected: false })
    expect(questions.ask(asker(), question(1), false)).toBe(false)
    expect(questions.ask(asker(), question(1), true)).toBe(true)
    expect(waiting).toHaveLength(1)
  })

  it('does not ask a client that has 256 questions open, until one is answered', () => {
    const { questions, sent, asker } = started()
    const server = asker()
    const asked = Array.from({ length: 300 }, (_, at) => questions.ask(server, question(at), false))
    expect([asked.filter(Boolean).length, questions.size, sent.length]).toEqual([256, 256, 256])
    questions.answered(answer((JSON.parse(sent[0] ?? '') as { id: string }).id))
    expect(questions.ask(server, question(300), false)).toBe(true)
  })

  it('tells the server when the client did not answer in time, sooner without a stream', async () => {
    for (const [isConnected, limit] of [
      [true, ASK_MS],
      [false, 10_000],
    ] as const) {
      const { questions, clock, waiting, asker } = started({ isConnected })
      const server = asker()
      questions.ask(server, question(5), true)
      await clock.advance(limit - 1)
      expect(server.messages).toEqual([])
      await clock.advance(1)
      expect(server.messages.map((text) => JSON.parse(text) as unknown)).toMatchObject([{ id: 5, error: { code: -32603 } }])
      expect([questions.size, waiting.length, clock.pending]).toEqual([0, 0, 0])
    }
  })

  it('withdraws a question for the server that asked it only', () => {
    const { questions, sent, asker } = started()
    const [one, other] = [asker(), asker()]
    questions.ask(one, question(3), false)
    const cancelled = parse<ParsedNotification>({ method: 'notifications/cancelled', params: { requestId: 3 } })
    expect(questions.withdrawn(other, 3, cancelled)).toBe(false)
    expect(questions.withdrawn(one, 3, cancelled)).toBe(true)
    const [asked, withdrawn] = sent.map((text) => JSON.parse(text) as { id?: string; params?: { requestId?: string } })
    expect(withdrawn?.params?.requestId).toBe(asked?.id)
  })

  it('cancels the questions of a server that has ended, and no others', () => {
    const { questions, sent, asker } = started()
    const [one, other] = [asker(), asker()]
    questions.ask(one, question(1), false)
    questions.ask(other, question(1), false)
    questions.askerDown(one)
    expect(questions.size).toBe(1)
    expect(JSON.parse(sent.at(-1) ?? '')).toMatchObject({ method: 'notifications/cancelled', params: { reason: 'the server has ended' } })
  })

  it('passes on progress to the server that asked, under its token, although another one has the same', () => {
    const { questions, sent, asker } = started()
    const [one, other] = [asker(), asker()]
    questions.ask(one, question(1, 'token-1'), false)
    questions.ask(other, question(1, 'token-1'), false)
    const progress = (progressToken: string) =>
      parse<ParsedNotification>({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
    expect(questions.progressed(progress('another'))).toBe(false)
    expect(questions.progressed(progress('token-1'))).toBe(false) // the server's own, which the client never saw
    const asked = JSON.parse(sent[1] ?? '') as { params: { _meta: { progressToken: string } } }
    expect(questions.progressed(progress(asked.params._meta.progressToken))).toBe(true)
    expect(one.messages).toEqual([])
    expect(other.messages.map((text) => JSON.parse(text) as unknown)).toMatchObject([{ params: { progressToken: 'token-1', progress: 1 } }])
  })

  it('passes on no progress of a question that asked for none', () => {
    const { questions, sent, asker } = started()
    const server = asker()
    questions.ask(server, question(1), false)
    const { id } = JSON.parse(sent[0] ?? '') as { id: string }
    const progress = parse<ParsedNotification>({ method: 'notifications/progress', params: { progressToken: id, progress: 1 } })
    expect(questions.progressed(progress)).toBe(false)
    expect(server.messages).toEqual([])
  })

  it('gives up all questions at its end', () => {
    const { questions, clock, asker } = started()
    const server = asker()
    questions.ask(server, question(1), false)
    questions.ask(server, question(2), false)
    questions.end()
    expect(server.messages).toHaveLength(2)
    expect([questions.size, clock.pending]).toEqual([0, 0])
  })
})

function started({ isConnected = true } = {}) {
  const clock = new TestClock()
  const sent: string[] = []
  const waiting: string[] = []
  const outlet = {
    isConnected,
    newest: () => (isConnected ? { send: (text: string) => (sent.push(text) > 0 ? 'sent' : 'lost') } : undefined),
    deliver: (text: string) => waiting.push(text) > 0,
    withdraw: (text: string) => void waiting.splice(0, waiting.length, ...waiting.filter((each) => each !== text)),
    end: () => {},
  } as unknown as Outlet
  const asker = () => {
    const responses: { id: RequestId; text: string }[] = []
    const messages: string[] = []
    return {
      ...{ responses, messages },
      respond: (text: string, id: RequestId) => responses.push({ id, text }),
      send: (text: string) => messages.push(text),
    } satisfies Asker & { responses: unknown; messages: unknown }
  }
  return { clock, sent, waiting, asker, questions: new ClientQuestions({ outlet, clock, askTimeoutMs: ASK_MS }) }
}

function question(id: number, progressToken?: string): ParsedRequest {
  return parse({ id, method: 'roots/list', ...(progressToken !== undefined && { params: { _meta: { progressToken } } }) })
}

function answer(id: string): ParsedResponse {
  return parse({ id, result: { roots: [] } })
}

function parse<T>(message: object): T {
  return parseText(JSON.stringify({ jsonrpc: '2.0', ...message })) as T
}
