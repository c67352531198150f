import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ConflictStrategy, type Contribution, type MergeRules, mergeDocuments } from '../merge/merge-documents.ts'
import { readDocument } from '../merge/read-document.ts'
import { documentBytes, writeDocument } from '../merge/write-document.ts'
import { ShardedMerge } from './sharded-merge.ts'
import { bytesOf, placeOf, shardDocument } from './shards.ts'

const RULES: MergeRules = { format: 'toolhive', strategy: 'prefix' }

function contribution(name: string, servers: Readonly<Record<string, object>>, more: object = {}): Contribution {
  const read = readDocument(JSON.stringify({ servers, ...more }), 'toolhive')
  if (!read.ok) throw new Error(read.problem)
  return { name, priority: 0, document: read.document }
}

function afresh(contributions: readonly Contribution[], rules: MergeRules) {
  const merge = mergeDocuments(contributions, rules)
  if (merge.kind === 'conflict') return merge
  const { document, dropped } = merge
  return { kind: 'merged', servers: document.entries.length, dropped, sharding: shardDocument(document) }
}

/** Many servers, so that they need several files. */
function large(map: number, description = 'x'): Contribution {
  const servers = Array.from({ length: 10 }, (_, index) => [`s-${map}-${index}`, { image: 'x', description: description.repeat(20_000) }])
  return contribution(`map-${map}`, Object.fromEntries(servers))
}

describe('ShardedMerge', () => {
  it('writes only the file of a changed entry, and gives the others as they were', () => {
    const merge = new ShardedMerge()
    const maps = Array.from({ length: 8 }, (_, index) => large(index))
    const before = merge.merge(maps, RULES)
    const changed = contribution('extra', { one: { image: 'x' } })
    const after = merge.merge([...maps, changed], RULES)
    if (before.kind === 'conflict' || after.kind === 'conflict' || !before.sharding.ok || !after.sharding.ok) throw new Error('refused')
    const { texts } = before.sharding
    expect(after.sharding.texts.flatMap((text, index) => (text === texts[index] ? [] : [index]))).toEqual([placeOf('one')])
    expect(after).toEqual(afresh([...maps, changed], RULES))
  })

  it('goes from one file to several and back, and over the limit and back', () => {
    const merge = new ShardedMerge()
    const maps = Array.from({ length: 8 }, (_, index) => large(index))
    const huge = Array.from({ length: 80 }, (_, index) => large(index + 10, 'é'))
    for (const given of [maps.slice(0, 1), maps, maps.slice(0, 2), [...maps, ...huge], maps, []])
      expect(merge.merge(given, RULES)).toEqual(afresh(given, RULES))
  })

  it('sees conflicts, groups and other rules come and go', () => {
    const merge = new ShardedMerge()
    const a = contribution('a', { x: { image: '1' }, y: { image: '1', tags: ['t'] } })
    const b = contribution('b', { x: { image: '2' } })
    const group = contribution('c', {}, { groups: [{ name: 'g', servers: { s: { image: 'x' } } }] })
    const steps: [Contribution[], Partial<MergeRules>][] = [
      [[a], {}],
      [[a, b], {}],
      [[a], {}],
      [[a, group], {}],
      [[a, b, group], { strategy: 'error' }],
      [[a, b], { strategy: 'priority' }],
      [[a], { filter: { tags: { include: ['t'] } } }],
      [[b], { filter: { names: { exclude: ['y'] } } }],
    ]
    for (const [given, more] of steps) expect(merge.merge(given, { ...RULES, ...more })).toEqual(afresh(given, { ...RULES, ...more }))
  })

  it('gives what a merge of all gives, whatever changes', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd/e', 'io.github.stacklok/a', 'f', 'g', '__proto__')
    const server = fc.oneof(
      fc.record({ image: fc.constantFrom('x', 'y'), tags: fc.constantFrom(['t'], []) }),
      fc.record({ url: fc.constant('https://example.com/é') }),
    )
    const map = fc.record({
      servers: fc.dictionary(name, server, { maxKeys: 3 }),
      time: fc.option(fc.constantFrom('2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z')),
    })
    const step = fc.tuple(fc.constantFrom('m1', 'm2', 'm3'), fc.option(map))
    const rules = fc.record({
      format: fc.constant('toolhive' as const),
      strategy: fc.constantFrom<ConflictStrategy>('prefix', 'priority', 'error'),
      filter: fc.constantFrom(undefined, { names: { exclude: ['b'] } }, { tags: { include: ['t'] } }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), rules, (steps, how) => {
        const merge = new ShardedMerge()
        const present = new Map<string, Contribution>()
        for (const [key, value] of steps) {
          if (value === null) present.delete(key)
          else present.set(key, contribution(key, value.servers, value.time === null ? {} : { last_updated: value.time }))
          expect(merge.merge([...present.values()], how)).toEqual(afresh([...present.values()], how))
        }
      }),
    )
  })
})

describe('documentBytes', () => {
  it('tells the size of a file without writing it', () => {
    const given = [
      large(1),
      contribution('a', { é: { image: 'x' } }, { remote_servers: { r: { url: 'https://x' } } }),
      contribution('b', {}),
    ]
    for (const count of [0, 1, 2, 3]) {
      const merge = mergeDocuments(given.slice(0, count), RULES)
      if (merge.kind === 'conflict') throw new Error('refused')
      expect(documentBytes(merge.document, bytesOf(merge.document))).toBe(Buffer.byteLength(writeDocument(merge.document)))
    }
  })
})
