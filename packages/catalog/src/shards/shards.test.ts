import { describe, expect, it } from 'vitest'
import { mergeDocuments } from '../merge/merge-documents.ts'
import { readDocument } from '../merge/read-document.ts'
import type { DocumentEntry, RegistryDocument } from '../merge/registry-document.ts'
import { createEntryCollector } from '../sources/format/entry-collector.ts'
import { parseRegistryText } from '../sources/format/parse-registry-text.ts'
import { MAX_SHARD_BYTES, MAX_SHARDS, placeOf, shardDocument, shardFile, shardName, writeOrder } from './shards.ts'

function documentOf(count: number, { bytes = 100, change = -1 } = {}): RegistryDocument {
  const entries = Array.from({ length: count }, (_, index): DocumentEntry => {
    const text = JSON.stringify({ image: `example.com/s${index}:${index === change ? 2 : 1}`, overview: 'x'.repeat(bytes) })
    return { name: `server-${index}`, field: 'servers', text, tags: [] }
  })
  return { format: 'toolhive', entries, groups: [], lastUpdated: '2026-01-01T00:00:00Z' }
}

function textsOf(document: RegistryDocument): readonly (string | undefined)[] {
  const sharding = shardDocument(document)
  if (!sharding.ok) throw new Error('too large')
  return sharding.texts
}

function served(texts: readonly (string | undefined)[]) {
  const into = createEntryCollector(100_000)
  for (const text of texts) if (text !== undefined) parseRegistryText(text, { into })
  return {
    problems: into.problems.filter(({ severity }) => severity === 'dropped'),
    entries: [...into.entries].sort((a, b) => (a.name < b.name ? -1 : 1)),
  }
}

describe('shardDocument', () => {
  it('writes one file up to 900 KiB', () => {
    const texts = textsOf(documentOf(100))
    expect(texts.filter((text) => text !== undefined)).toHaveLength(1)
    expect(readDocument(texts[0] ?? '', 'toolhive')).toMatchObject({ ok: true, document: { entries: { length: 100 } } })
  })

  it('spreads more than that over at most 16 files that hold the same data', () => {
    const document = documentOf(30, { bytes: 100_000 })
    const texts = textsOf(document)
    expect(texts).toHaveLength(MAX_SHARDS)
    expect(texts.filter((text) => text !== undefined).length).toBeGreaterThan(3)
    expect(texts.every((text) => Buffer.byteLength(text ?? '') <= MAX_SHARD_BYTES)).toBe(true)
    const whole = mergeDocuments([{ name: 'a', priority: 0, document }], { format: 'toolhive', strategy: 'prefix' })
    const one = served([
      JSON.stringify({ servers: Object.fromEntries(document.entries.map(({ name, text }) => [name, JSON.parse(text)])) }),
    ])
    expect(whole.kind).toBe('merged')
    expect(served(texts)).toEqual(one)
  })

  it('touches one file for one changed entry, and the first for a new time', () => {
    const before = textsOf(documentOf(40, { bytes: 50_000 }))
    const after = textsOf(documentOf(40, { bytes: 50_000, change: 7 }))
    const changed = before.flatMap((text, index) => (text === after[index] ? [] : [index]))
    expect(changed).toEqual([placeOf('server-7')])
    const later = textsOf({ ...documentOf(40, { bytes: 50_000 }), lastUpdated: '2026-02-01T00:00:00Z' })
    expect(before.flatMap((text, index) => (text === later[index] ? [] : [index]))).toEqual([0])
  })

  it('loses no entry and reports none while files change in their order', () => {
    const small = textsOf(documentOf(8, { bytes: 100_000 }))
    const large = textsOf(documentOf(16, { bytes: 100_000 }))
    for (const [from, to] of [
      [small, large],
      [large, small],
    ] as const) {
      const now = [...from]
      const kept = new Set(served(small).entries.map(({ name }) => name))
      for (const index of writeOrder(to)) {
        now[index] = to[index]
        const { entries, problems } = served(now)
        expect(problems).toEqual([])
        expect(entries.filter(({ name }) => kept.has(name))).toHaveLength(kept.size)
      }
    }
  })

  it('refuses what 16 files cannot hold', () => {
    expect(shardDocument(documentOf(200, { bytes: 100_000 }))).toMatchObject({ ok: false, bytes: expect.any(Number) })
  })

  it('names maps and files', () => {
    expect([shardName('x', 0), shardName('x', 15), shardFile(0), shardFile(3)]).toEqual(['x', 'x-15', 'registry.json', 'registry-3.json'])
  })
})
