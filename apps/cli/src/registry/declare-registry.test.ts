import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KubeClient } from '@thv/kube/client/client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { removeRegistry } from './declare-registry.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-registry-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the data folder of an earlier version', () => {
  const start = async () => {
    const client = { tryGet: async () => undefined } as unknown as KubeClient
    const log = { info: () => {}, warn: () => {} }
    await removeRegistry({ folder, client, variables: {}, log, signal: new AbortController().signal })
  }

  it.each([{ url: 'http://127.0.0.1:4711' }, { url: 'http://127.0.0.1:4711', problem: 'it has ended' }])(
    'loses the note with the old address of the registry: %j',
    async (note) => {
      writeFileSync(join(folder, 'registry.json'), JSON.stringify(note, null, 2))
      await start()
      expect(existsSync(join(folder, 'registry.json'))).toBe(false)
    },
  )

  it.each(['{"servers":{}}', '{"url":"http://a.example","servers":{}}', '[]', 'not JSON', ''])(
    'keeps a file of the user by the same name: %j',
    async (text) => {
      writeFileSync(join(folder, 'registry.json'), text)
      await start()
      expect(readFileSync(join(folder, 'registry.json'), 'utf8')).toBe(text)
    },
  )
})
