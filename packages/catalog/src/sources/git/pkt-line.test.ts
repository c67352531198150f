import { ThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPacketReader, lineOf, packetLine } from './pkt-line.ts'

function read(chunks: readonly Buffer[]): string[] {
  const packets: string[] = []
  const reader = createPacketReader((packet) => packets.push(typeof packet === 'string' ? packet : `"${packet.toString('latin1')}"`))
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  return packets
}

const cut = (data: Buffer, size: number) =>
  Array.from({ length: Math.ceil(data.length / size) }, (_, i) => data.subarray(i * size, (i + 1) * size))

describe('packets', () => {
  it('are lines, bytes and marks', () => {
    expect(packetLine('command=fetch')).toBe('0012command=fetch\n')
    expect(read([Buffer.from('0006a\n00010004000bfoobar\n00000002')])).toEqual(['"a\n"', 'delim', '""', '"foobar\n"', 'flush', 'end'])
    expect(lineOf(Buffer.from('a b\n'))).toBe('a b')
    expect(lineOf(Buffer.from('a b'))).toBe('a b')
  })

  it('are the same however the stream is cut', () => {
    const packet = fc.oneof(fc.constantFrom('0000', '0001', '0002'), fc.string({ maxLength: 40 }).map(packetLine))
    fc.assert(
      fc.property(fc.array(packet, { maxLength: 8 }), fc.integer({ min: 1, max: 17 }), (packets, size) => {
        const data = Buffer.from(packets.join(''))
        expect(read(cut(data, size))).toEqual(read([data]))
        expect(read([data])).toHaveLength(packets.length)
      }),
    )
  })

  it('may be as long as git allows', () => {
    const longest = Buffer.concat([Buffer.from('fff0'), Buffer.alloc(65_516, 'x')])
    expect(read(cut(longest, 1_000))).toEqual([`"${'x'.repeat(65_516)}"`])
  })

  it.each([
    ['an HTML page', '<html>', 'not the protocol of git'],
    ['a sign', '+00a123456', 'not the protocol of git'],
    ['the length 3', '0003', 'an impossible length (3)'],
    ['too long a packet', 'fff1', 'an impossible length (65521)'],
    ['half a packet', '000aabc', 'in the middle of a packet'],
    ['half a length', '00', 'in the middle of a packet'],
  ])('are not %s', (_name, text, message) => {
    for (const size of [1, 3, 100]) expect(() => read(cut(Buffer.from(text), size))).toThrow(message)
  })

  it('end with a coded error or not at all, whatever comes', () => {
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit: fc.constantFrom(...'000012af\n'), maxLength: 60 }))
    fc.assert(
      fc.property(bytes, fc.integer({ min: 1, max: 9 }), (given, size) => {
        try {
          read(cut(Buffer.from(given), size))
        } catch (error) {
          expect(error).toBeInstanceOf(ThvError)
        }
      }),
    )
  })
})
