import { describe, expect, it } from 'vitest'
import { answer } from './lean-answers.ts'
import { callText, checkAnswer, checkLarge, INITIALIZE } from './load-messages.ts'

describe('the load generator and the lean server', () => {
  it.each(['legacy', 'modern'] as const)('understand each other in the %s era', (era) => {
    const call = { id: 3, text: 'a.3' }
    const { response, tool } = answer(callText(era, 'echo', call))
    expect(tool).toBe('echo')
    expect(() => checkAnswer(response ?? '', { era, ...call })).not.toThrow()
    expect(() => checkAnswer(`event: message\ndata: ${response}\n\n`, { era, ...call })).not.toThrow()
    expect(() => checkAnswer(`id: 1\ndata:\n\ndata: ${response}\n\n`, { era, ...call })).not.toThrow()
  })

  it('know a large result from a small one', () => {
    const of = (tool: 'echo' | 'large') => answer(callText('modern', tool, { id: 3, text: 'a.3' })).response ?? ''
    expect(() => checkAnswer(of('large'), { era: 'modern', id: 3, text: 'a.3' })).not.toThrow()
    expect(() => checkLarge(of('large'), 3)).not.toThrow()
    expect(() => checkLarge(of('echo'), 3)).toThrow(/only \d+ characters/)
  })

  it('shake hands', () => expect(answer(INITIALIZE).response).toContain('"protocolVersion":"2025-11-25"'))

  it.each([
    ['an answer of another session', { era: 'legacy', id: 3, text: 'b.3' }],
    ['an answer to another call', { era: 'legacy', id: 4, text: 'a.3' }],
    ['an answer of the other era', { era: 'modern', id: 3, text: 'a.3' }],
  ] as const)('notice %s', (_what, expected) => {
    const { response = '' } = answer(callText('legacy', 'echo', { id: 3, text: 'a.3' }))
    expect(() => checkAnswer(response, expected)).toThrow(/the answer to call/)
  })

  it('notice an error', () =>
    expect(() => checkAnswer('{"jsonrpc":"2.0","id":1,"error":{}}', { era: 'legacy', id: 1, text: 'x' })).toThrow())
})
