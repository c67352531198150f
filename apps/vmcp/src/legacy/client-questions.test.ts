import { getEventListeners } from 'node:events'
import { TestClock } from '@thv/kernel/clock'
import type { ParsedResponse } from '@thv/mcp/parse-body'
import { describe, expect, it } from 'vitest'
import { ClientQuestions } from './client-questions.ts'

const QUESTION = { method: 'roots/list', params: {} }

function asked(clock = new TestClock()) {
  const questions = new ClientQuestions(clock)
  const sent: { readonly id?: string; readonly method?: string; readonly params?: { readonly requestId?: string } }[] = []
  const send = (text: string) => sent.push(JSON.parse(text)) > 0
  const answer = (id: string, result: object) =>
    questions.answered({ kind: 'response', id, message: { jsonrpc: '2.0', id, result } } as unknown as ParsedResponse)
  return { questions, sent, send, answer, clock }
}

describe('questions of backends to a legacy client', () => {
  it('leave nothing behind at the call that they belong to, however they end', async () => {
    const { questions, sent, send, answer, clock } = asked()
    const call = new AbortController()
    const listeners = () => getEventListeners(call.signal, 'abort').length
    const first = questions.ask(QUESTION, send, call.signal)
    expect(listeners()).toBe(1)
    answer(sent[0]?.id ?? '', { roots: [] })
    expect(await first).toEqual({ roots: [] })
    expect(listeners()).toBe(0)
    const late = questions.ask(QUESTION, send, call.signal)
    late.catch(() => {})
    await clock.advance(600_000)
    await expect(late).rejects.toThrow('in time')
    expect([listeners(), questions.size]).toEqual([0, 0])
    const withdrawn = questions.ask(QUESTION, send, call.signal)
    call.abort()
    await expect(withdrawn).rejects.toThrow('withdrawn')
    expect(sent.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: sent[2]?.id } })
    expect([listeners(), questions.size]).toEqual([0, 0])
  })

  it('have a bound, and answers to none of them are ignored', async () => {
    const { questions, send, answer } = asked()
    const { signal } = new AbortController()
    const open = Array.from({ length: 256 }, () => questions.ask(QUESTION, send, signal).catch(() => 'ended'))
    await expect(questions.ask(QUESTION, send, signal)).rejects.toThrow('too many')
    answer('another session.1', {})
    expect(questions.size).toBe(256)
    questions.end()
    expect(new Set(await Promise.all(open))).toEqual(new Set(['ended']))
  })
})
