import { describe, expect, it } from 'vitest'
import { configMapText } from './config-map-text.ts'

const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes).toString('base64')

describe('configMapText', () => {
  it.each([
    ['data', { data: { 'registry.json': '{}' } }, { ok: true, text: '{}' }],
    ['binary data that are text', { binaryData: { 'registry.json': base64('{}') } }, { ok: true, text: '{}' }],
    [
      'binary data that are none',
      { binaryData: { 'registry.json': base64(Uint8Array.of(0xff, 0)) } },
      { ok: false, problem: 'key registry.json is not UTF-8 text' },
    ],
    ['another key', { data: { other: '{}' } }, { ok: false, problem: 'has no key registry.json' }],
    ['an empty key', { data: { 'registry.json': '' } }, { ok: false, problem: 'key registry.json is empty' }],
    ['nothing', {}, { ok: false, problem: 'has no key registry.json' }],
  ])('[003-044] [002-258] reads %s', (_title, map, expected) => {
    expect(configMapText(map, 'registry.json')).toEqual(expected)
  })

  it('[003-024] reads the given key and no other', () => {
    expect(configMapText({ data: { 'registry.json': 'a', 'mine.json': 'b' } }, 'mine.json')).toEqual({ ok: true, text: 'b' })
    expect(configMapText({ data: {} }, 'constructor')).toMatchObject({ ok: false })
  })
})
