import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SseDecoder, type SseEvent } from './sse-decoder.ts'
import { encodeEvent, KEEP_ALIVE_FRAME, messageFrame, primingFrame, retryFrame, SSE_RESPONSE_HEADERS } from './sse-encoder.ts'

function decode(text: string): { events: SseEvent[]; decoder: SseDecoder } {
  const events: SseEvent[] = []
  const decoder = new SseDecoder((event) => events.push(event))
  decoder.push(Buffer.from(text))
  return { events, decoder }
}

describe('encodeEvent', () => {
  it('pins the wire form', () => {
    expect(encodeEvent({ data: 'x' })).toBe('data: x\n\n')
    expect(encodeEvent({ id: '1', event: 'endpoint', retry: 5, data: 'a\nb\r\nc\rd' })).toBe(
      'event: endpoint\nid: 1\nretry: 5\ndata: a\ndata: b\ndata: c\ndata: d\n\n',
    )
    expect(messageFrame('{}')).toBe('event: message\ndata: {}\n\n')
    expect(messageFrame('{\n}', '7')).toBe('event: message\nid: 7\ndata: {\ndata: }\n\n')
    expect(primingFrame('7')).toBe('id: 7\ndata: \n\n')
    expect(primingFrame('7', 500)).toBe('id: 7\nretry: 500\ndata: \n\n')
    expect(retryFrame(500)).toBe('retry: 500\n\n')
    expect(KEEP_ALIVE_FRAME).toBe(': keep-alive\n\n')
    expect(SSE_RESPONSE_HEADERS).toEqual({ 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  })

  it('is undone by the decoder, but for the kind of line ends', () => {
    const line = fc.string({ unit: 'binary' }).map((s) => s.replace(/[\r\n\0]/g, '').toWellFormed())
    const event = fc.record(
      {
        data: fc.string({ unit: fc.constantFrom('a', ' ', ':', '\r', '\n', '\ufeff', '😀', 'data') }),
        id: line,
        event: line.filter((s) => s !== ''),
        retry: fc.nat(),
      },
      { requiredKeys: ['data'] },
    )
    fc.assert(
      fc.property(fc.array(event), (events) => {
        const text = events.map((e) => encodeEvent(e) + KEEP_ALIVE_FRAME).join('')
        expect(decode(text).events).toEqual(events.map((e) => ({ ...e, data: e.data.replace(/\r\n|\r/g, '\n') })))
      }),
    )
  })

  it('lets no field be smuggled in by a name or an id', () => {
    for (const bad of ['a\nb', 'a\rdata: x', 'a\0']) {
      expect(() => encodeEvent({ data: '', id: bad })).toThrow(RangeError)
      expect(() => encodeEvent({ data: '', event: bad })).toThrow(RangeError)
      expect(() => messageFrame('{}', bad)).toThrow(RangeError)
    }
  })

  it('has frames that are not events', () => {
    expect(decode(KEEP_ALIVE_FRAME + retryFrame(7))).toMatchObject({ events: [], decoder: { retry: 7 } })
    expect(decode(primingFrame('a', 1))).toMatchObject({ events: [{ id: 'a', data: '', retry: 1 }], decoder: { lastEventId: 'a' } })
  })
})
