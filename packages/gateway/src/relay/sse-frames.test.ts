import { SseDecoder, type SseEvent } from '@thv/mcp/sse-decoder'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { editFrames, FrameSplitter, frameData, singleData } from './sse-frames.ts'

const LARGE = { maxHeldBytes: 1 << 20, onLarge: 'fail' } as const

/** Frames as servers write them, with every line end there is. */
const stream = fc
  .tuple(
    fc.constantFrom('\n', '\r\n', '\r'),
    fc.array(
      fc.record({
        event: fc.option(fc.constantFrom('message', 'endpoint'), { nil: undefined }),
        id: fc.option(fc.stringMatching(/^[a-z0-9]{1,5}$/), { nil: undefined }),
        data: fc.option(fc.stringMatching(/^[ -~äöü€😀]{0,20}$/u), { nil: undefined }),
        comment: fc.boolean(),
      }),
      { minLength: 1, maxLength: 8 },
    ),
  )
  .map(([eol, frames]) => frames.map((frame) => spell(frame, eol)).join(''))

function spell(
  { event, id, data, comment }: { event?: string | undefined; id?: string | undefined; data?: string | undefined; comment: boolean },
  eol: string,
): string {
  const lines = [comment && ': hello', event && `event: ${event}`, id && `id: ${id}`, data !== undefined && `data: ${data}`].filter(Boolean)
  return lines.length === 0 ? `: nothing${eol}${eol}` : `${lines.join(eol)}${eol}${eol}`
}

function chunks(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end))
}

function eventsOf(bytes: Buffer): SseEvent[] {
  const events: SseEvent[] = []
  new SseDecoder((event) => events.push(event)).push(bytes)
  return events
}

describe('FrameSplitter', () => {
  it('gives every byte out once, in order, and only whole frames', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (text, cuts) => {
        const splitter = new FrameSplitter(LARGE)
        const given: Buffer[] = []
        for (const chunk of chunks(Buffer.from(text), cuts)) {
          const frames = splitter.push(chunk)
          if (frames === undefined) continue
          expect(splitter.atBoundary).toBe(true)
          given.push(frames)
          // A decoder that sees only this piece finds whole events: nothing is left over for the next one.
          expect(eventsOf(Buffer.concat(given))).toEqual(eventsOf(Buffer.from(text)).slice(0, eventsOf(Buffer.concat(given)).length))
          expect(eventsOf(Buffer.concat([frames, Buffer.from('data: probe\n\n')])).at(-1)).toEqual({ data: 'probe' })
        }
        expect(Buffer.concat(given).toString()).toBe(text)
      }),
    )
  })

  it('holds back a frame that has not ended', () => {
    const splitter = new FrameSplitter(LARGE)
    expect(splitter.push(Buffer.from('data: 1\n\ndata: 2\n'))?.toString()).toBe('data: 1\n\n')
    expect(splitter.push(Buffer.from('data: 3'))).toBeUndefined()
    expect(splitter.push(Buffer.from('\n\n'))?.toString()).toBe('data: 2\ndata: 3\n\n')
  })

  it('passes a frame over the limit on in pieces and knows when it is over', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 8 }), fc.constantFrom('\n', '\r\n'), (cuts, eol) => {
        const text = `data: a${eol}${eol}data: ${'x'.repeat(100)}${eol}${eol}data: b${eol}${eol}`
        const splitter = new FrameSplitter({ maxHeldBytes: 16, onLarge: 'pass' })
        const given = chunks(Buffer.from(text), cuts).map((chunk) => splitter.push(chunk) ?? Buffer.alloc(0))
        expect(Buffer.concat(given).toString()).toBe(text)
        expect(splitter.atBoundary).toBe(true)
      }),
    )
    const splitter = new FrameSplitter({ maxHeldBytes: 16, onLarge: 'pass' })
    expect(splitter.push(Buffer.from(`data: ${'x'.repeat(20)}`))?.length).toBe(26)
    expect(splitter.atBoundary).toBe(false)
  })

  it('gives up on one when it has to be held', () => {
    const splitter = new FrameSplitter({ maxHeldBytes: 16, onLarge: 'fail' })
    expect(() => splitter.push(Buffer.from(`data: ${'x'.repeat(20)}`))).toThrow(expect.objectContaining({ code: 'message_too_large' }))
  })

  it('takes one byte at a time without copying everything each time', () => {
    const splitter = new FrameSplitter(LARGE)
    const text = `data: ${'x'.repeat(200_000)}\n\n`
    let out: Buffer | undefined
    for (const byte of Buffer.from(text)) out = splitter.push(Buffer.of(byte)) ?? out
    expect(out?.length).toBe(text.length)
  })
})

describe('singleData', () => {
  it('is the data that a decoder sees, or nothing', () => {
    const line = fc.constantFrom('data: {"id":1}', 'data:x', 'data', 'event: message', 'id: 1', ': data: no', 'xdata: y', 'data: é')
    const lines = fc.array(fc.oneof(line, fc.constant('')), { maxLength: 6 })
    fc.assert(
      fc.property(lines, fc.constantFrom('\n', '\r\n', '\r'), fc.boolean(), (each, eol, isWhole) => {
        const frames = Buffer.from(each.join(eol) + (isWhole ? eol + eol : ''))
        const data = singleData(frames)?.toString()
        if (data !== undefined) expect(frameData(frames)).toEqual([data])
      }),
      { numRuns: 3_000 },
    )
  })

  it.each(['data: {"a":1}\n\n', 'data:{"a":1}\n\n', 'event: message\ndata: {"a":1}\n\n', 'event: message\nid: 7\ndata: {"a":1}\n\n'])(
    'knows %j',
    (text) => {
      expect(singleData(Buffer.from(text))?.toString()).toBe('{"a":1}')
    },
  )

  it.each(['', '\n\n', 'data: a\n', 'data: a\n\ndata: b\n\n', 'data: a\ndata: b\n\n', 'data: a\r\n\r\n', ': data: a\n\n'])(
    'leaves %j',
    (text) => {
      expect(singleData(Buffer.from(text))).toBeUndefined()
    },
  )
})

describe('editFrames', () => {
  it('changes the data alone and keeps the other fields', () => {
    const frames = Buffer.from(': hi\nevent: message\nid: 7\ndata: {"a":1}\nretry: 5\n\ndata: other\n\n')
    const edited = editFrames(frames, (data) => data.replace('1', '2'))
    expect(eventsOf(edited)).toEqual([{ id: '7', event: 'message', data: '{"a":2}', retry: 5 }, { data: 'other' }])
    expect(edited.toString().endsWith('data: other\n\n')).toBe(true)
  })

  it('is the same buffer when nothing changes', () => {
    fc.assert(
      fc.property(stream, (text) => {
        const frames = Buffer.from(text)
        expect(editFrames(frames, (data) => data)).toBe(frames)
      }),
    )
  })

  it('sees the data that a decoder sees', () => {
    fc.assert(
      fc.property(stream, (text) => {
        expect(frameData(Buffer.from(text))).toEqual(eventsOf(Buffer.from(text)).map(({ data }) => data))
      }),
    )
    expect(frameData(Buffer.from('data: a\ndata:b\ndata\n\n'))).toEqual(['a\nb\n'])
  })
})
