import { tmpdir } from 'node:os'
import { deflateSync } from 'node:zlib'
import { ThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { overLimit } from './git-error.ts'
import type { ObjectKind } from './git-objects.ts'
import { Pack, TOO_LARGE } from './pack.ts'
import { PackFile } from './pack-file.ts'
import { type BuiltObject, buildPack, deltaOf, oidOf, withChecksum } from './testing/pack-builder.ts'

interface Options {
  readonly maxObjects?: number
  readonly maxObjectBytes?: number
  readonly maxWork?: number
  readonly chunk?: number
}

/** Reads objects of a pack; rejects as the pack does. */
async function read(pack: Buffer, wanted: readonly [ObjectKind, string][], options: Options = {}) {
  using file = new PackFile({ tempDir: tmpdir(), maxObjects: options.maxObjects ?? 10_000 })
  const chunk = options.chunk ?? 1_000
  for (let at = 0; at < pack.length; at += chunk) file.append(pack.subarray(at, at + chunk))
  file.finish()
  let left = options.maxWork ?? 100_000_000
  const budget = {
    spend(bytes: number) {
      left -= bytes
      if (left < 0) throw overLimit('too much work')
    },
    breathe: async () => {},
  }
  const opened = await Pack.open(file, { budget, maxObjectBytes: options.maxObjectBytes ?? 10_000_000 })
  const found: (string | undefined)[] = []
  for (const [kind, oid] of wanted) found.push((await opened.read(oid, kind))?.toString('latin1'))
  return found
}

const blob = (text: string): BuiltObject => ({ type: 'blob', content: Buffer.from(text, 'latin1') })
const oid = (text: string) => oidOf('blob', Buffer.from(text, 'latin1'))
const nowhere = 'ab'.repeat(20)

describe('a pack', () => {
  it('gives its objects by hash and kind', async () => {
    expect(oid('hello\n')).toBe('ce013625030ba8dba906f756967f9e9ca394464a') // as git says
    const large = 'large '.repeat(200_000)
    const pack = buildPack([blob('hello\n'), blob(''), blob(large)])
    for (const chunk of [1, 7, 100_000]) {
      const wanted: [ObjectKind, string][] = [
        ['blob', oid('hello\n')],
        ['blob', oid('')],
        ['blob', oid(large)],
        ['blob', nowhere],
        ['tree', oid('')],
      ]
      expect(await read(pack, wanted, { chunk })).toEqual(['hello\n', '', large, undefined, undefined])
    }
  })

  it('resolves deltas of deltas, by place and by hash, in whatever order they come', async () => {
    const base = Buffer.from('the base '.repeat(100))
    const second = Buffer.concat([base.subarray(0, 500), Buffer.from('second')])
    const third = Buffer.concat([second.subarray(0, 505), Buffer.from('third')])
    const fourth = Buffer.concat([third.subarray(0, 10), Buffer.from('fourth')])
    const objects: BuiltObject[] = [
      { type: 'ref-delta', baseOid: oidOf('blob', third), content: deltaOf(third, 10, Buffer.from('fourth')) },
      { type: 'ref-delta', baseOid: oidOf('blob', second), content: deltaOf(second, 505, Buffer.from('third')) },
      { type: 'blob', content: base },
      { type: 'ofs-delta', base: 2, content: deltaOf(base, 500, Buffer.from('second')) },
    ]
    const wanted = [fourth, third, second, base].map((content): [ObjectKind, string] => ['blob', oidOf('blob', content)])
    expect(await read(buildPack(objects), wanted)).toEqual([fourth, third, second, base].map(String))
  })

  it('makes of any base and any instructions what they say', async () => {
    const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
    await fc.assert(
      fc.asyncProperty(bytes, fc.nat(300), bytes, async (base, copied, added) => {
        const cutAt = Math.min(copied, base.length)
        const result = Buffer.concat([base.subarray(0, cutAt), added])
        const objects: BuiltObject[] = [
          { type: 'blob', content: base },
          { type: 'ofs-delta', base: 0, content: deltaOf(base, cutAt, added) },
        ]
        expect(await read(buildPack(objects), [['blob', oidOf('blob', result)]])).toEqual([result.toString('latin1')])
      }),
      { numRuns: 50 },
    )
  })

  it('copies 64 KB by an instruction without a length', async () => {
    const base = Buffer.alloc(70_000, 'abc')
    const delta = Buffer.concat([Buffer.from([0xf0, 0xa2, 0x04, 0x80, 0x80, 0x04]), Buffer.from([0x80])])
    const objects: BuiltObject[] = [
      { type: 'blob', content: base },
      { type: 'ofs-delta', base: 0, content: delta },
    ]
    expect(await read(buildPack(objects), [['blob', oidOf('blob', base.subarray(0, 0x10000))]])).toEqual([
      String(base.subarray(0, 0x10000)),
    ])
  })

  it('has chains of deltas up to a length', async () => {
    const objects: BuiltObject[] = [blob('0')]
    for (let i = 1; i <= 4_096; i++) {
      const base = Buffer.from(`${i - 1}`)
      objects.push({ type: 'ofs-delta', base: i - 1, content: deltaOf(base, 0, Buffer.from(`${i}`)) })
    }
    const pack = buildPack(objects)
    expect(await read(pack, [['blob', oid('4095')]])).toEqual(['4095'])
    await expect(read(pack, [['blob', oid('4096')]])).rejects.toMatchObject({ code: 'source_limit' })
  })

  it('tells what is too large from what is not there', async () => {
    const base = Buffer.alloc(1_000, 'x')
    const delta = deltaOf(base, 1_000, Buffer.from('more'))
    const result = Buffer.concat([base, Buffer.from('more')])
    const pack = buildPack([{ type: 'blob', content: base }, { type: 'ofs-delta', base: 0, content: delta }, blob('small')])
    const wanted: [ObjectKind, string][] = [
      ['blob', oidOf('blob', base)],
      ['blob', oidOf('blob', result)],
      ['blob', oid('small')],
    ]
    expect(await read(pack, wanted, { maxObjectBytes: 1_000 })).toEqual([String(base), TOO_LARGE, 'small'])
    expect(await read(pack, wanted, { maxObjectBytes: 999 })).toEqual([TOO_LARGE, TOO_LARGE, 'small'])
  })

  it('does not resolve what needs an object that it does not have, nor deltas of each other', async () => {
    const base = Buffer.from('base')
    const objects: BuiltObject[] = [
      blob('good'),
      { type: 'ref-delta', baseOid: nowhere, content: deltaOf(base, 4, Buffer.from('!')) },
      { type: 'ref-delta', baseOid: oid('b'), content: deltaOf(Buffer.from('b'), 0, Buffer.from('a')) },
      { type: 'ref-delta', baseOid: oid('a'), content: deltaOf(Buffer.from('a'), 0, Buffer.from('b')) },
    ]
    expect(
      await read(buildPack(objects), [
        ['blob', oid('base!')],
        ['blob', oid('a')],
        ['blob', oid('good')],
      ]),
    ).toEqual([undefined, undefined, 'good'])
  })

  it('is bounded in work: a small delta may not make much of little many times', async () => {
    const base = Buffer.alloc(100_000)
    const copies = Array.from(
      { length: 100 },
      (_, i): BuiltObject => ({ type: 'ofs-delta', base: i, content: deltaOf(base, 100_000, Buffer.alloc(0)) }),
    )
    const pack = buildPack([{ type: 'blob', content: base }, ...copies])
    expect(pack.length).toBeLessThan(10_000)
    await expect(read(pack, [['blob', nowhere]], { maxWork: 5_000_000 })).rejects.toMatchObject({ code: 'source_limit' })
  })
})

describe('a bad pack', () => {
  const good = buildPack([blob('hello\n'), blob('world\n')])
  const garbled = Buffer.from(good)
  garbled.writeUInt8((garbled[20] ?? 0) ^ 1, 20)
  const half = deflateSync(Buffer.alloc(5_000, 'x')).subarray(0, 10)
  const base = blob('0123456789')
  const delta = (content: Buffer, more: Partial<BuiltObject> = {}): BuiltObject => ({ type: 'ofs-delta', base: 0, content, ...more })
  it.each<[string, Buffer, string]>([
    ['nothing', Buffer.alloc(0), 'no complete pack'],
    ['a head without a body', good.subarray(0, 12), 'no complete pack'],
    ['another format', Buffer.from(`${'<html>'.repeat(10)}`), 'something else than a pack'],
    ['another version', buildPack([], { version: 4 }), 'something else than a pack'],
    ['a changed byte', garbled, 'checksum'],
    ['a cut end', good.subarray(0, -3), 'checksum'],
    [
      'more objects than it has',
      buildPack([blob('a')], { count: 2 }),
      'of an unknown type|middle of an object|is broken|no object|runs into',
    ],
    ['fewer objects than it has', buildPack([blob('a'), blob('b')], { count: 1 }), 'behind its last object'],
    ['something behind its objects', buildPack([blob('a')], { behind: Buffer.from('x') }), 'behind its last object'],
    ['too small a size', buildPack([{ ...blob('12345'), size: 4 }]), 'does not have the size it says'],
    ['too large a size', buildPack([{ ...blob('12345'), size: 6 }]), 'does not have the size it says'],
    [
      'a large object that says it is small',
      buildPack([{ ...blob('x'.repeat(2_000_000)), size: 600_000 }]),
      'does not have the size it says',
    ],
    ['a small object that says it is large', buildPack([{ ...blob('x'), size: 600_000 }]), 'does not have the size it says'],
    ['half an object', buildPack([{ ...blob('x'.repeat(5_000)), raw: half }]), 'is broken|in the middle of an object'],
    ['an object that is not compressed', buildPack([{ ...blob('x'.repeat(50)), raw: Buffer.alloc(50, 'x') }]), 'is broken'],
    ['a large object that is not compressed', buildPack([{ ...blob('x'), size: 600_000, raw: Buffer.alloc(50, 'x') }]), 'is broken'],
    ['a delta of itself', buildPack([base, delta(Buffer.from('x'), { distance: 0 })]), 'has a base that is no object'],
    ['a delta of the middle of something', buildPack([base, delta(Buffer.from('x'), { distance: 3 })]), 'has a base that is no object'],
    ['a delta of what is before the pack', buildPack([base, delta(Buffer.from('x'), { distance: 5_000 })]), 'has a base that is no object'],
    ['a delta for another base', buildPack([base, delta(deltaOf(Buffer.from('another'), 2, Buffer.from('x')))]), 'does not fit its base'],
    ['a delta that reads too far', buildPack([base, delta(Buffer.from([10, 5, 0x91, 8, 5]))]), 'reads or writes too far'],
    ['a delta that writes too far', buildPack([base, delta(Buffer.from([10, 1, 0x90, 5]))]), 'reads or writes too far'],
    ['a delta that makes too little', buildPack([base, delta(Buffer.from([10, 5, 0x90, 4]))]), 'makes less than it says'],
    ['an instruction without its end', buildPack([base, delta(Buffer.from([10, 5, 0x9f, 1]))]), 'ends too early'],
    ['the instruction zero', buildPack([base, delta(Buffer.from([10, 5, 0]))]), 'unknown instruction'],
    ['an empty delta', buildPack([base, delta(Buffer.alloc(0))]), 'ends too early'],
    ['a delta of an endless size', buildPack([base, delta(Buffer.alloc(20, 0xff))]), 'beyond all bounds'],
  ])('with %s is refused', async (_name, pack, message) => {
    await expect(read(pack, [['blob', nowhere]])).rejects.toSatisfy(
      (error) => error instanceof ThvError && new RegExp(message).test(error.message),
    )
  })

  it('with more objects than allowed is refused at its first bytes', () => {
    using file = new PackFile({ tempDir: tmpdir(), maxObjects: 1_000 })
    const head = buildPack([], { count: 4_000_000_000 }).subarray(0, 12)
    file.append(head.subarray(0, 5))
    expect(() => file.append(head.subarray(5))).toThrow('4000000000 objects at this commit, more than the 1000 allowed')
  })

  it('with an object of many petabytes is refused before any of it is unpacked', async () => {
    const pack = buildPack([{ ...blob('x'), size: 2 ** 50 }])
    await expect(read(pack, [])).rejects.toMatchObject({ code: 'source_limit' })
    const beyond = withChecksum(Buffer.concat([buildPack([], { count: 1 }).subarray(0, 12), Buffer.alloc(60, 0xff)]))
    await expect(read(beyond, [])).rejects.toMatchObject({ code: 'source_limit' })
  })

  it('ends with a coded error or not at all, whatever is changed in it', async () => {
    const objects = [base, blob('x'.repeat(3_000)), delta(deltaOf(Buffer.from('0123456789'), 5, Buffer.from('new')))]
    const refs: BuiltObject = {
      type: 'ref-delta',
      baseOid: oid('0123456789'),
      content: deltaOf(Buffer.from('0123456789'), 2, Buffer.from('y')),
    }
    const sound = buildPack([...objects, refs]).subarray(0, -20)
    const change = fc.record({ at: fc.nat(sound.length - 1), value: fc.nat(255) })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), fc.nat(30), async (changes, cutOff) => {
        const data = Buffer.from(sound.subarray(0, sound.length - cutOff))
        for (const { at, value } of changes) if (at < data.length) data[at] = value
        const error = await read(withChecksum(data), [['blob', nowhere]], { maxWork: 1_000_000 }).then(
          () => undefined,
          (e: unknown) => e,
        )
        if (error !== undefined) expect(error).toBeInstanceOf(ThvError)
      }),
      { numRuns: 300 },
    )
  })
})
