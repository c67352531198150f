import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LineFramer, type LineFramerOptions } from './line-framer.ts'

type Limits = Pick<LineFramerOptions, 'maxLineBytes' | 'maxDepth'>

/** Messages by their text, noise as `reason:preview`. */
function frame(chunks: readonly (string | Uint8Array)[], limits: Limits = {}): string[] {
  const seen: string[] = []
  const framer = new LineFramer({
    onMessage: (message) => seen.push(message.text),
    onNoise: ({ reason, preview }) => seen.push(`${reason}:${preview}`),
    ...limits,
  })
  for (const chunk of chunks) framer.push(Buffer.from(chunk))
  framer.end()
  return seen
}

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const pong = '{"jsonrpc":"2.0","id":1,"result":{}}'

describe('LineFramer', () => {
  it('gives one message per line, also the last without its end', () => {
    expect(frame([`${ping}\n${pong}\n`])).toEqual([ping, pong])
    expect(frame([`${ping}\r\n${pong}`])).toEqual([ping, pong])
    expect(frame([`\n\r\n  \n${ping}\n\t\n`])).toEqual([ping])
    expect(frame([` ${ping} \n`])).toEqual([` ${ping} `])
    expect(frame([])).toEqual([])
  })

  it('says what each message is', () => {
    const kinds: unknown[] = []
    const framer = new LineFramer({ onMessage: ({ kind, id, method }) => kinds.push([kind, id, method]), onNoise: () => {} })
    framer.push(Buffer.from(`${ping}\n${pong}\n{"jsonrpc":"2.0","method":"n"}\n`))
    expect(kinds).toEqual([
      ['request', 1, 'ping'],
      ['response', 1, undefined],
      ['notification', undefined, 'n'],
    ])
  })

  it('reports what is no message, and goes on', () => {
    expect(
      frame([
        'Server started\n',
        `${ping}\n`,
        '{"level":30,"msg":"log"}\n',
        '{not json}\n',
        '[]\n',
        Buffer.from([0x7b, 0xff, 0x0a]),
        `${pong}\n`,
      ]),
    ).toEqual([
      'not_json:Server started',
      ping,
      'not_json_rpc:{"level":30,"msg":"log"}',
      'not_json:{not json}',
      'batch:[]',
      'not_utf8:{\ufffd',
      pong,
    ])
    expect(frame([`{"a":${'['.repeat(200)}\n`], { maxDepth: 4 })).toEqual([expect.stringMatching(/^too_deep:/)])
  })

  it('names a malformed answer, so that no call waits for it', () => {
    const ids: unknown[] = []
    const framer = new LineFramer({ onMessage: () => {}, onNoise: ({ id }) => ids.push(id) })
    framer.push(Buffer.from('{"jsonrpc":"2.0","id":7,"error":"text"}\nlog\n'))
    expect(ids).toEqual([7, undefined])
  })

  it('keeps every character: joiners, byte order marks inside, non-breaking spaces', () => {
    const text = '{"jsonrpc":"2.0","id":1,"result":"\u00a0👩‍👧\ufeff\ufffd\u2028"}'
    expect(frame([`${text}\n`])).toEqual([text])
  })

  it('takes a line of exactly the limit, whatever its end, and drops one byte more', () => {
    const limits = { maxLineBytes: ping.length }
    for (const chunks of [[`${ping}\n`], [`${ping}\r\n`], [`${ping}\r`, '\n'], [ping, '\r\n'], [ping]]) {
      expect(frame([...chunks, `${chunks[0] === ping && chunks.length === 1 ? '' : pong}`], limits)[0]).toBe(ping)
    }
    const long = `${ping} `
    for (const chunks of [[`${long}\n`], [`${long}\r\n`], [long, '\n'], [ping, ' ', '\r', '\n'], [long, 'x'.repeat(999), '\n']]) {
      expect(frame([...chunks, `${pong}\n`], limits)).toEqual([expect.stringMatching(/^too_large:/), pong])
    }
    expect(frame([long], limits)).toEqual([expect.stringMatching(/^too_large:/)])
  })

  it('keeps nothing of an endless line, and reports it once', () => {
    let noise = 0
    const framer = new LineFramer({ onMessage: () => {}, onNoise: () => noise++, maxLineBytes: 1_000 })
    const chunk = Buffer.alloc(10_000, 'x')
    for (let i = 0; i < 1_000; i++) framer.push(chunk)
    framer.end()
    expect(noise).toBe(1)
  })

  it('has a limit of 10 MiB', () => {
    const line = (bytes: number) => `{"jsonrpc":"2.0","method":"${'x'.repeat(bytes - 29)}"}\n`
    expect(Buffer.byteLength(line(10 * 1024 * 1024))).toBe(10 * 1024 * 1024 + 1)
    expect(frame([line(10 * 1024 * 1024)])[0]).toMatch(/^\{/)
    expect(frame([line(10 * 1024 * 1024 + 1)])[0]).toMatch(/^too_large/)
  })

  it('does not mind where the chunks are cut', () => {
    const piece = fc.constantFrom(ping, pong, '\n', '\r\n', '\r', ' ', 'log', '{', '}', '[', '"é', '😀', 'xxxxxxxxxxxxxxxxxxxxxxxxx')
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 20 }),
        fc.uint8Array({ maxLength: 4 }),
        fc.array(fc.nat(), { maxLength: 10 }),
        (parts, junk, cuts) => {
          const bytes = Buffer.concat([Buffer.from(parts.join('')), junk, Buffer.from('\n'), Buffer.from(parts.toReversed().join(''))])
          const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
          const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end))
          for (const limits of [{}, { maxLineBytes: 50 }]) {
            expect(frame(chunks, limits)).toEqual(frame([bytes], limits))
            expect(
              frame(
                [...bytes].map((byte) => Uint8Array.of(byte)),
                limits,
              ),
            ).toEqual(frame([bytes], limits))
          }
        },
      ),
    )
  })
})
