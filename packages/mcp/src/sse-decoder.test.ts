import { isThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeSse, SseDecoder, type SseEvent, type SseLimits } from './sse-decoder.ts'

interface Decoded {
  events: SseEvent[]
  lastEventId: string
  retry: number | undefined
  failed: boolean
}

function decode(chunks: readonly Uint8Array[], limits: SseLimits = {}): Decoded {
  const events: SseEvent[] = []
  const decoder = new SseDecoder((event) => events.push(event), limits)
  let failed = false
  try {
    for (const chunk of chunks) decoder.push(chunk)
  } catch (error) {
    if (!isThvError(error, 'message_too_large')) throw error
    failed = true
  }
  return { events, lastEventId: decoder.lastEventId, retry: decoder.retry, failed }
}

const decodeText = (text: string): SseEvent[] => decode([Buffer.from(text)]).events

/** The standard's algorithm word for word, on the whole text at once. */
function reference(bytes: Uint8Array): Omit<Decoded, 'failed'> {
  const text = new TextDecoder('utf-8').decode(bytes)
  const lines = text.split(/\r\n|\r|\n/)
  lines.pop()
  const events: SseEvent[] = []
  let [data, name, lastEventId, buffer]: [string, string, string, string] = ['', '', '', '']
  let own: { id?: string; retry?: number } = {}
  let retry: number | undefined
  for (const line of lines) {
    if (line === '') {
      lastEventId = buffer
      if (data !== '') events.push({ ...own, ...(name === '' ? {} : { event: name }), data: data.slice(0, -1) })
      ;[data, name, own] = ['', '', {}]
      continue
    }
    const colon = line.indexOf(':')
    if (colon === 0) continue
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'data') data += `${value}\n`
    else if (field === 'event') name = value
    else if (field === 'id' && !value.includes('\0')) own.id = buffer = value
    else if (field === 'retry' && /^[0-9]+$/.test(value)) own.retry = retry = Math.min(Number(value), Number.MAX_SAFE_INTEGER)
  }
  return { events, lastEventId, retry }
}

const token = fc.constantFrom(
  ...['data:', 'data', 'data: ', 'event:', 'id:', 'retry:', ':', ' ', 'x', 'é', '😀', '\r', '\n', '\r\n', '\n\n', '\0', '7', '\ufeff'],
)
const eventBytes = fc.array(token, { maxLength: 40 }).map((parts) => Buffer.from(parts.join('')))
const anyBytes = fc.oneof(
  eventBytes,
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  fc.tuple(eventBytes, fc.uint8Array({ maxLength: 5 }), eventBytes).map((parts) => Buffer.concat(parts)),
)

function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end))
}

describe('SseDecoder', () => {
  it('does what the standard says, for any bytes in any chunks', () => {
    fc.assert(
      fc.property(anyBytes, fc.array(fc.nat(), { maxLength: 12 }), (bytes, cuts) => {
        const expected = { ...reference(bytes), failed: false }
        expect(decode([bytes])).toEqual(expected)
        expect(decode(cutAt(bytes, cuts))).toEqual(expected)
        expect(decode([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(expected)
      }),
      { numRuns: 500 },
    )
  })

  it('gives the same events before a limit is hit, however the bytes are cut', () => {
    fc.assert(
      fc.property(anyBytes, fc.array(fc.nat(), { maxLength: 12 }), fc.nat(12), fc.nat(12), (bytes, cuts, maxLineBytes, maxEventBytes) => {
        const limits = { maxLineBytes, maxEventBytes }
        expect(decode(cutAt(bytes, cuts), limits)).toEqual(decode([bytes], limits))
      }),
      { numRuns: 500 },
    )
  })

  it('does not keep the memory of its chunks', () => {
    const chunk = Buffer.from('data: ab')
    const events: SseEvent[] = []
    const decoder = new SseDecoder((event) => events.push(event))
    decoder.push(chunk)
    chunk.fill('X')
    decoder.push(Buffer.from('c\n\n'))
    expect(events).toEqual([{ data: 'abc' }])
  })

  it.each<[string, SseEvent[]]>([
    ['data: a\n\n', [{ data: 'a' }]],
    ['data:a\n\n', [{ data: 'a' }]],
    ['data:  a\n\n', [{ data: ' a' }]],
    ['data: a\rdata: b\r\r', [{ data: 'a\nb' }]],
    ['data: a\r\ndata: b\r\n\r\n', [{ data: 'a\nb' }]],
    ['data\n\n', [{ data: '' }]],
    ['data:\ndata:\n\n', [{ data: '\n' }]],
    ['id: 1\ndata: \n\n', [{ id: '1', data: '' }]],
    ['id: 1\n\n', []],
    ['event: endpoint\ndata: /messages?sessionId=1\n\n', [{ event: 'endpoint', data: '/messages?sessionId=1' }]],
    ['event: a\nevent:\ndata: x\n\n', [{ data: 'x' }]],
    ['event: a\n\ndata: x\n\n', [{ data: 'x' }]],
    ['id: a\ndata: 1\n\ndata: 2\n\n', [{ id: 'a', data: '1' }, { data: '2' }]],
    ['id: a\0b\ndata: 1\n\n', [{ data: '1' }]],
    ['retry: 500\ndata: 1\n\n', [{ data: '1', retry: 500 }]],
    ['retry: 5s\ndata: 1\n\n', [{ data: '1' }]],
    ['retry: -5\nretry:\nretry: 1.5\ndata: 1\n\n', [{ data: '1' }]],
    [': comment\n:\n\ndata: 1\n\n', [{ data: '1' }]],
    ['Data: 1\ndataX: 2\n data: 3\ndatadata: 4\n\n', []],
    ['\ufeffdata: 1\n\n', [{ data: '1' }]],
    ['\ufeff\ufeffdata: 1\n\n', []],
    ['data: 1\n\n\ufeffdata: 2\n\n', [{ data: '1' }]],
    ['data: 1\n', []],
    ['data: 1', []],
    ['', []],
  ])('reads %j', (text, events) => {
    expect(decodeText(text)).toEqual(events)
  })

  it('takes nothing away that only begins like a byte order mark', () => {
    const rest = Buffer.from('data: 1\n\ndata: 2\n\n')
    for (const mark of [[0xef], [0xef, 0xbb], [0xef, 0xac, 0x80], [0xef, 0xbb, 0xbe]]) {
      expect(decode([Buffer.from(mark), rest]).events).toEqual([{ data: '2' }])
      expect(decode([Buffer.concat([Buffer.from(mark), rest])]).events).toEqual([{ data: '2' }])
    }
  })

  it('replaces what is not UTF-8', () => {
    const bytes = Buffer.concat([Buffer.from('data: a'), Buffer.from([0xff, 0xe2, 0x82]), Buffer.from('\n\n')])
    expect(decode([bytes]).events).toEqual([{ data: 'a\ufffd\ufffd' }])
  })

  it('keeps id and retry of blocks without data, for a reconnect', () => {
    expect(decode([Buffer.from('id: 7\nretry: 250\n\n')])).toEqual({ events: [], lastEventId: '7', retry: 250, failed: false })
    expect(decode([Buffer.from('id: 7\ndata: x\n\nid: 8\ndata: cut off')]).lastEventId).toBe('7')
    expect(decode([Buffer.from('id: 7\ndata: x\n\nid\n\n')]).lastEventId).toBe('')
    expect(decode([Buffer.from(`retry: ${'9'.repeat(400)}\n`)]).retry).toBe(Number.MAX_SAFE_INTEGER)
  })

  it('takes a line and an event of exactly the limit', () => {
    expect(decode([Buffer.from('data: 1234\n\n')], { maxLineBytes: 10 })).toMatchObject({ failed: false, events: [{ data: '1234' }] })
    expect(decode([Buffer.from('data: 12345\n\n')], { maxLineBytes: 10 })).toMatchObject({ failed: true, events: [] })
    expect(decode([Buffer.from('data: 12345')], { maxLineBytes: 10 })).toMatchObject({ failed: true })
    expect(decode([Buffer.from('data:1\ndata:2\n\n')], { maxEventBytes: 12 })).toMatchObject({ failed: false, events: [{ data: '1\n2' }] })
    expect(decode([Buffer.from('data:0\n\ndata:1\ndata:2\ndata:3\n\n')], { maxEventBytes: 12 })).toMatchObject({
      failed: true,
      events: [{ data: '0' }],
    })
    expect(decode([Buffer.from(':1234567890123456789\ndata:1\n\n')], { maxEventBytes: 6 })).toMatchObject({ failed: false })
  })

  it('stays failed', () => {
    const decoder = new SseDecoder(() => {}, { maxLineBytes: 3 })
    expect(() => decoder.push(Buffer.from('data: 1\n\n'))).toThrow(/SSE line .* 3 bytes/)
    expect(() => decoder.push(Buffer.from('a\n'))).toThrow(/SSE line/)
  })
})

describe('decodeSse', () => {
  async function* source(...chunks: string[]): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) yield Buffer.from(chunk)
  }

  it('gives the events of a stream, and its state before them', async () => {
    const seen: unknown[] = []
    for await (const event of decodeSse(source('id: 1\nda', 'ta: a\n\nda', 'ta: b\n\nretry: 9\n\n'), {
      onState: ({ lastEventId, retry }) => seen.push([lastEventId, retry]),
    }))
      seen.push(event)
    expect(seen).toEqual([['', undefined], ['1', undefined], { id: '1', data: 'a' }, ['1', 9], { data: 'b' }])
  })

  it('gives what came before a fault, then the fault', async () => {
    const seen: SseEvent[] = []
    const run = async () => {
      for await (const event of decodeSse(source('data: a\n\ndata: too long\n\n'), { maxLineBytes: 8 })) seen.push(event)
    }
    await expect(run()).rejects.toSatisfy((error) => isThvError(error, 'message_too_large'))
    expect(seen).toEqual([{ data: 'a' }])
  })

  it('passes on the error of its source and ends it when left early', async () => {
    let ended = false
    async function* broken(): AsyncGenerator<Uint8Array> {
      try {
        yield Buffer.from('data: a\n\n')
        throw new Error('reset')
      } finally {
        ended = true
      }
    }
    for await (const event of decodeSse(broken())) {
      expect(event).toEqual({ data: 'a' })
      break
    }
    expect(ended).toBe(true)
    const iterator = decodeSse(broken())
    await iterator.next()
    await expect(iterator.next()).rejects.toThrow('reset')
  })
})
