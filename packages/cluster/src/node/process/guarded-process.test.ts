import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { isThvError } from '@thv/kernel/errors'
import { processStart } from '@thv/programs/process-identity'
import { describe, expect, it } from 'vitest'
import { endLeftovers } from '../node-cleanup.ts'
import { startGuarded } from './guarded-process.ts'
import { CONTAINER_MARK, killMarked } from './process-table.ts'

const mark = () => `test${randomBytes(8).toString('hex')}.`
const sh = (script: string, more: object = {}) =>
  startGuarded({
    file: '/bin/sh',
    args: ['-c', script],
    env: { A: '1', PATH: '/usr/bin:/bin' },
    cwd: '/',
    stdin: false,
    mark: mark(),
    ...more,
  })
const gone = async (pid: number) => {
  for (let tries = 0; tries < 500 && processStart(pid) !== undefined; tries++) await delay(20)
  return processStart(pid) === undefined
}

describe('startGuarded', () => {
  it('gives a program its arguments, its environment, its streams, and no other file', async () => {
    const child = await sh('read line; echo "$line $A"; echo err >&2; [ -e /proc/self/fd/3 ] && echo open; exit 7', { stdin: true })
    child.stdin?.end('hello\n')
    expect(await Promise.all([text(child.stdout), text(child.stderr), child.ended])).toEqual(['hello 1\n', 'err\n', { exitCode: 7 }])
  })

  it('tells by which signal it ended', async () => {
    const child = await sh('kill -TERM $$')
    expect(await child.ended).toEqual({ exitCode: 143, signal: 15 })
  })

  it('knows no child that it did not start', async () => {
    const child = await startGuarded({
      file: process.execPath,
      args: [
        '-e',
        `const { pid } = process; console.log(require('fs').readFileSync('/proc/' + pid + '/task/' + pid + '/children', 'utf8').trim())`,
      ],
      env: {},
      cwd: '/',
      stdin: false,
      mark: mark(),
    })
    expect((await text(child.stdout)).trim()).toBe('')
  })

  it('kills what the program left in its group and outside of it', async () => {
    const child = await sh(`sleep 600 & echo $!; (setsid sh -c 'echo $$; exec sleep 600' &); read end`, { stdin: true })
    const pids = await new Promise<number[]>((resolve) => {
      let all = ''
      child.stdout.on('data', (chunk) => {
        all += chunk
        if (all.trim().split('\n').length === 2) resolve(all.trim().split('\n').map(Number))
      })
    })
    expect(pids.map(processStart)).not.toContain(undefined)
    child.stdin?.end()
    await child.ended
    expect(await Promise.all(pids.map(gone))).toEqual([true, true])
  })

  it('says why nothing could be started', async () => {
    const error = await sh('true', { cwd: '/no/such/folder' }).catch((e: unknown) => e)
    expect(isThvError(error, 'process_start_failed')).toBe(true)
  })
})

describe('processes that a node has left behind', () => {
  it('is ended by mark, and by id and start time', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'thv-left-'))
    const own = mark()
    const idle = (env: object) => spawn('sleep', ['600'], { detached: true, stdio: 'ignore', env: { PATH: '/usr/bin:/bin', ...env } })
    // A variable of its own whose name ends like ours does not hide a process.
    const [marked, recorded, other] = [
      idle({ [`X_${CONTAINER_MARK}`]: 'x', [CONTAINER_MARK]: `${own}c.` }),
      idle({}),
      idle({ [CONTAINER_MARK]: mark() }),
    ]
    try {
      mkdirSync(join(folder, 'pods', 'u', 'processes'), { recursive: true })
      const put = (name: string, pid: number | undefined, start: string | undefined) =>
        writeFileSync(join(folder, 'pods', 'u', 'processes', name), JSON.stringify({ pid, start }))
      put('a.json', recorded.pid, processStart(recorded.pid ?? 0))
      put('b.json', other.pid, 'another start')
      writeFileSync(join(folder, 'pods', 'u', 'processes', 'c.json'), '{"pid":')
      await endLeftovers(folder, own)
      expect(await Promise.all([gone(marked.pid ?? 0), gone(recorded.pid ?? 0)])).toEqual([true, true])
      expect(processStart(other.pid ?? 0)).toBeDefined()
      await Promise.all([killMarked('nothing.'), killMarked('nobody.')])
      expect(processStart(other.pid ?? 0)).toBeDefined()
    } finally {
      other.kill('SIGKILL')
      rmSync(folder, { recursive: true })
    }
  })
})
