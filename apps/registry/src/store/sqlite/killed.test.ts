import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { systemClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { soakRounds } from '@thv/testkit/run/run-environment'
import { afterEach, describe, expect, it } from 'vitest'
import { rowsAfter, sourceOf } from '../testing/contract/contract-tools.ts'
import { openSqliteStore } from './sqlite-store.ts'

const WRITER = fileURLToPath(new URL('../testing/sync-writer-main.ts', import.meta.url))
const ROWS = 2_000
const folder = mkdtempSync(join(tmpdir(), 'thv-registry-'))
const path = join(folder, 'registry.sqlite')
let child: ChildProcess | undefined

afterEach(() => {
  child?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

describe('a process that is killed while it writes a sync', () => {
  it('leaves all of it or nothing, and no lock', { timeout: 300_000 }, async () => {
    const rounds = 3 * soakRounds()
    let last = 0
    for (let round = 0; round < rounds; round++) {
      const told = await writeUntilKilled(last + 1, round)
      expect(told).toBeGreaterThan(last)
      const store = await openSqliteStore({ path, clock: systemClock, lockWaitMs: 0 })
      const rows = await rowsAfter(store)
      const { sync } = await sourceOf(store, 'a')
      last = Number(sync.hash)
      // The last write may have been done and not been reported.
      expect(last - told).toBeOneOf([0, 1])
      expect(rows.length).toBe(ROWS)
      expect(new Set(rows.map((row) => JSON.parse(row.text).round))).toEqual(new Set([last]))
      expect(new Set(rows.map((row) => row.revision))).toEqual(new Set([(await store.revision()).data]))
      expect(sync.serverCount).toBe(ROWS)
      await store[Symbol.asyncDispose]()
      const database = new DatabaseSync(path, { readOnly: true })
      expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
      database.close()
    }
  })
})

/** Gives the number that it told last. */
async function writeUntilKilled(first: number, round: number): Promise<number> {
  const writer = spawn(process.execPath, [WRITER, path, String(ROWS), String(first)], { stdio: ['ignore', 'pipe', 'inherit'] })
  child = writer
  let [told, since] = [0, 0]
  for await (const line of createInterface(writer.stdout)) {
    told = Number(line)
    // The first write makes the rows; the second one tells how long the third will take, of which it sees another share each time.
    if (told === first) since = performance.now()
    if (told !== first + 1) continue
    const took = performance.now() - since
    if (round === 0) expect(await refusal()).toBe('conflict')
    setTimeout(() => writer.kill('SIGKILL'), took * (0.2 + ((round * 3) % 8) / 10))
  }
  if (writer.exitCode === null && writer.signalCode === null) await once(writer, 'exit')
  expect(writer.signalCode).toBe('SIGKILL')
  return told
}

async function refusal(): Promise<string | undefined> {
  try {
    await (await openSqliteStore({ path, clock: systemClock, lockWaitMs: 0 }))[Symbol.asyncDispose]()
    return undefined
  } catch (error) {
    return isThvError(error) ? error.code : String(error)
  }
}
