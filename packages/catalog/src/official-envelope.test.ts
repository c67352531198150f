import { describe, expect, it } from 'vitest'
import type { CatalogEntry } from './catalog-entry.ts'
import { readServerResponse, responseMeta, wrapDocumentText } from './official-envelope.ts'

const document = { version: '1.2.0', zebra: { b: 1, a: [2] }, name: 'com.example/notes', description: 'Notes', _meta: { 'x/y': {} } }
const entry: CatalogEntry = {
  name: 'com.example/notes',
  version: '1.2.0',
  document,
  status: 'deprecated',
  statusMessage: 'use 2.0.0',
  publishedAt: '2026-01-01T00:00:00Z',
  updatedAt: '2026-02-01T00:00:00Z',
  statusChangedAt: '2026-03-01T00:00:00Z',
  source: 'main',
}

describe('sent envelopes', () => {
  it('is the document as it is, and the official block beside it', () => {
    expect(wrapDocumentText(JSON.stringify(document), responseMeta(entry, true))).toBe(
      '{"server":{"version":"1.2.0","zebra":{"b":1,"a":[2]},"name":"com.example/notes","description":"Notes","_meta":{"x/y":{}}},' +
        '"_meta":{"io.modelcontextprotocol.registry/official":{"status":"deprecated","statusChangedAt":"2026-03-01T00:00:00Z",' +
        '"statusMessage":"use 2.0.0","publishedAt":"2026-01-01T00:00:00Z","updatedAt":"2026-02-01T00:00:00Z","isLatest":true}}}',
    )
  })

  it('has no member for a message that is not there, and our own facts under our own key', () => {
    const { statusMessage: _, ...silent } = entry
    expect(responseMeta(silent, false, { source: 'main' })).toEqual({
      'io.modelcontextprotocol.registry/official': {
        status: 'deprecated',
        statusChangedAt: '2026-03-01T00:00:00Z',
        publishedAt: '2026-01-01T00:00:00Z',
        updatedAt: '2026-02-01T00:00:00Z',
        isLatest: false,
      },
      'dev.toolhive/registry': { source: 'main' },
    })
  })

  it('keeps what parsing would lose when wrapped as text', () => {
    const text = '{"b":1.0,"10":1,"2":12345678901234567890}'
    expect(wrapDocumentText(text, { k: 1 })).toBe(`{"server":${text},"_meta":{"k":1}}`)
  })
})

describe('envelopes of another registry', () => {
  const defaults = { source: 'main', now: '2026-11-01T00:00:00Z' }

  it('comes back as it was sent', () => {
    expect(readServerResponse({ server: document, _meta: responseMeta(entry, false) }, defaults)).toEqual({ ok: true, entry })
  })

  it('is active and new where nothing is said', () => {
    const read = readServerResponse({ server: document, _meta: {} }, defaults)
    const { now } = defaults
    expect(read.ok && read.entry).toMatchObject({
      status: 'active',
      publishedAt: now,
      updatedAt: now,
      statusChangedAt: now,
      source: 'main',
    })
    expect(read.ok && 'statusMessage' in read.entry).toBe(false)
  })

  it('is refused with all problems of document and block', () => {
    const official = { status: 'gone', publishedAt: 'yesterday', statusMessage: 'x'.repeat(501) }
    const read = readServerResponse(
      { server: { ...document, name: 'x' }, _meta: { 'io.modelcontextprotocol.registry/official': official } },
      defaults,
    )
    const block = '/_meta/io.modelcontextprotocol.registry~1official'
    expect(!read.ok && read.problems.map((problem) => problem.pointer)).toEqual([
      '/server/name',
      `${block}/status`,
      `${block}/statusMessage`,
      `${block}/publishedAt`,
    ])
    expect(readServerResponse([], defaults).ok).toBe(false)
    expect(readServerResponse({ server: document, _meta: 'x' }, defaults)).toEqual({
      ok: false,
      problems: [{ pointer: '/_meta', message: 'must be an object' }],
    })
    expect(readServerResponse({}, defaults).ok).toBe(false)
  })
})
