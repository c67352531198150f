import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { encodeMessage } from '@thv/programs/shared-process/messages'
import { describe, expect, it } from 'vitest'
import type { GuardedProcess, ProcessEnd } from './guarded-process.ts'
import { SharedProcess } from './shared-process.ts'

describe('a program that is cut off', () => {
  function started() {
    let kills = 0
    const timers: (() => void)[] = []
    const clock: Clock = {
      ...systemClock,
      setTimer: (_, fn) => {
        timers.push(fn)
        return { cancel: () => {} }
      },
    }
    const kill = () => void kills++
    const host: GuardedProcess = {
      ...{ pid: process.pid, start: 'now', stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() },
      ...{ ended: new Promise<ProcessEnd>(() => {}), signal: () => {}, kill, killAll: kill },
    }
    const shared = new SharedProcess(host, clock)
    const command = { file: 'runner', args: [], env: {}, cwd: '/', stdin: false, mark: 'shared-process-test.' }
    const program = shared.start(command)
    shared.start(command) // the process does not end with the first
    const timeIsUp = () => {
      for (const fire of timers) fire()
    }
    return { host, program, timeIsUp, kills: () => kills }
  }

  it('takes the process with it when that does not answer', async () => {
    const { program, timeIsUp, kills } = started()
    program?.kill()
    timeIsUp()
    await setImmediate()
    expect(kills()).toBe(1)
  })

  it('does not when the answer is there, though this process had no time to read it', async () => {
    const { host, program, timeIsUp, kills } = started()
    program?.kill()
    timeIsUp()
    ;(host.stdout as PassThrough).write(encodeMessage({ exit: 1, code: 137 }))
    expect(await program?.ended).toEqual({ exitCode: 137 })
    await setImmediate()
    expect(kills()).toBe(0)
  })
})
