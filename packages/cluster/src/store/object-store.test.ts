import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isThvError } from '@thv/kernel/errors'
import { soakRounds } from '@thv/testkit/run/run-environment'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { ObjectStore, type WriteResult } from './object-store.ts'
import type { StoredObject } from './stored-object.ts'

const folders: string[] = []
const open: ObjectStore[] = []

afterEach(() => {
  for (const store of open.splice(0)) store.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'thv-store-'))
  folders.push(folder)
  return folder
}

function openStore(options: ConstructorParameters<typeof ObjectStore>[0] = {}): ObjectStore {
  const store = new ObjectStore(options)
  open.push(store)
  return store
}

function written(result: WriteResult): StoredObject {
  if ('refused' in result) throw new Error(result.refused)
  return result.object
}

const put = (store: ObjectStore, key: string, value = 0) => {
  const current = store.get('things', key)
  const [namespace = '', name = ''] = key.split('/')
  const body = { metadata: { name, namespace }, value }
  return written(current ? store.update(current, body) : store.create('things', key, body))
}

describe('ObjectStore', () => {
  it('counts one revision for everything and stamps it into the object', () => {
    const store = openStore()
    const first = put(store, 'a/x')
    const other = written(store.create('others', 'x', { metadata: { name: 'x' } }))
    expect(other.revision).toBe(first.revision + 1)
    expect(first.body['metadata']).toEqual({ name: 'x', namespace: 'a', resourceVersion: String(first.revision) })
    expect(store.revision).toBe(other.revision)
  })

  it('refuses a write on another version than the current one', () => {
    const store = openStore()
    const old = put(store, 'a/x', 1)
    put(store, 'a/x', 2)
    expect(store.update(old, old.body)).toEqual({ refused: 'conflict' })
    expect(store.delete(old)).toEqual({ refused: 'conflict' })
    expect(store.create('things', 'a/x', old.body)).toEqual({ refused: 'exists' })
    written(store.delete(store.get('things', 'a/x') ?? old))
    expect(store.update(old, old.body)).toEqual({ refused: 'missing' })
  })

  it('lists all pages at the revision of the first, whatever is written between them', () => {
    const store = openStore()
    for (const key of ['a/1', 'a/2', 'a/3', 'b/1']) put(store, key)
    const first = store.list({ type: 'things', namespace: 'a', limit: 1 })
    if (first === 'expired') throw new Error('expired')
    expect(first.objects.map((o) => o.key)).toEqual(['a/1'])
    expect(first.remaining).toBe(2)
    written(store.delete(store.get('things', 'a/3') ?? put(store, 'a/3')))
    put(store, 'a/2', 9)
    put(store, 'a/25')
    const rest = store.list({ type: 'things', namespace: 'a', after: { revision: first.revision, key: 'a/1' } })
    if (rest === 'expired') throw new Error('expired')
    expect(rest.objects.map((o) => [o.key, o.body['value']])).toEqual([
      ['a/2', 0],
      ['a/3', 0],
    ])
    store.compact()
    expect(store.list({ type: 'things', after: { revision: first.revision, key: 'a/1' } })).toBe('expired')
  })

  it('keeps a bounded history and says from where it is complete', () => {
    const store = openStore({ history: { maxChanges: 3 } })
    const revisions = [1, 2, 3, 4, 5].map((value) => put(store, 'a/x', value).revision)
    const log = store.log('things')
    expect(log.size).toBe(3)
    expect(log.oldest).toBe(revisions[1])
    expect(log.next(log.oldest)?.revision).toBe(revisions[2])
    expect(log.next(revisions[4] ?? 0)).toBeUndefined()
  })

  it('bounds the bytes of its history', () => {
    const store = openStore({ history: { maxBytes: 10_000 } })
    for (let n = 0; n < 50; n++) written(store.create('things', `a/${n}`, { metadata: { name: `${n}` }, data: 'x'.repeat(1_000) }))
    expect(store.log('things').size).toBeLessThan(11)
  })

  it('rolls back to any revision it still knows', () => {
    const step = fc.record({ key: fc.constantFrom('a/1', 'a/2', 'b/1', 'b/2', 'a-b/1'), remove: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const store = new ObjectStore()
        const states = new Map<number, string[]>()
        const note = () => {
          const page = store.list({ type: 'things' })
          if (page !== 'expired')
            states.set(
              page.revision,
              page.objects.map((o) => o.text),
            )
        }
        note()
        for (const [value, { key, remove }] of steps.entries()) {
          const current = store.get('things', key)
          if (remove && current) written(store.delete(current))
          else put(store, key, value)
          note()
        }
        for (const [revision, texts] of states) {
          const page = store.list({ type: 'things', after: { revision, key: '' } })
          expect(page === 'expired' ? page : page.objects.map((o) => o.text)).toEqual(texts)
        }
      }),
    )
  })

  it('is the same after it was closed and opened', () => {
    const folder = newFolder()
    const store = openStore({ folder })
    put(store, 'a/x', 1)
    written(store.delete(put(store, 'a/y', 2)))
    store.close()
    const again = openStore({ folder })
    expect(again.revision).toBe(store.revision)
    expect(again.get('things', 'a/x')?.body).toEqual(store.get('things', 'a/x')?.body)
    expect(again.get('things', 'a/y')).toBeUndefined()
    expect(put(again, 'a/z').revision).toBe(store.revision + 1)
  })

  it('is for its owner alone, also in a folder that others may read', () => {
    const folder = newFolder()
    chmodSync(folder, 0o755)
    const store = openStore({ folder })
    put(store, 'ns/a', 1)
    for (const name of readdirSync(folder)) expect([name, statSync(join(folder, name)).mode & 0o077]).toEqual([name, 0])
  })

  it('refuses a second one on the same folder', () => {
    const folder = newFolder()
    openStore({ folder })
    try {
      openStore({ folder })
      expect.unreachable()
    } catch (error) {
      expect(isThvError(error, 'data_folder_in_use')).toBe(true)
    }
  })

  it('loses no acknowledged write when it is killed', async () => {
    const rounds = 5 * soakRounds()
    const folder = newFolder()
    const acknowledged = new Map<string, { revision: number; number: number | null }>()
    for (let round = 0; round < rounds; round++) {
      const lines = await writeUntilKilled(folder, 20 + 60 * round)
      expect(lines.length).toBeGreaterThan(0)
      for (const { key, revision, number } of lines) acknowledged.set(key, { revision, number })
      const store = openStore({ folder })
      const last = Math.max(...lines.map(({ revision }) => revision))
      expect(store.revision).toBeGreaterThanOrEqual(last)
      for (const [key, { revision, number }] of acknowledged) {
        const found = store.get('things', key)
        // One write may be done and not acknowledged.
        if (store.revision > last && (found?.revision ?? last + 1) > last) continue
        expect([key, found?.body['number'] ?? null]).toEqual([key, number])
        if (found) expect(found.revision).toBe(revision)
      }
      store.close()
    }
  })
})

async function writeUntilKilled(folder: string, writes: number): Promise<{ key: string; revision: number; number: number | null }[]> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./testing/writer-main.ts', import.meta.url)), folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    if (text.split('\n').length > writes) child.kill('SIGKILL')
  })
  await once(child, 'close')
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { key: string; revision: number; number: number | null })
}
