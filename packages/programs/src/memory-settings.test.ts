import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MEMORY_SETTINGS, memorySettingProblems, memorySettings } from './memory-settings.ts'

describe('memorySettings', () => {
  it('gives every program a small nursery and one arena', () => {
    expect(memorySettings({ PATH: '/bin' })).toEqual(MEMORY_SETTINGS)
    expect(memorySettings({ NODE_OPTIONS: '' })).toEqual(MEMORY_SETTINGS)
  })

  it('leaves what the user has set', () => {
    const env = { NODE_OPTIONS: '--max-semi-space-size=16 --trace-warnings', MALLOC_ARENA_MAX: '2' }
    expect(memorySettings(env)).toEqual({ ...env, MALLOC_TRIM_THRESHOLD_: '65536' })
  })

  it('reaches V8 in a process that is started with it, ours or that of the user', () => {
    const nursery = (env: Record<string, string>) => {
      const script = `const kept = []
        for (let round = 0; round < 80; round++) kept[round % 20] = Array.from({ length: 20_000 }, (_, index) => ({ index }))
        console.log(v8.getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space').space_size)`
      const { stdout, stderr } = spawnSync(process.execPath, ['-e', script], { env: memorySettings(env), encoding: 'utf8' })
      expect(stderr).toBe('')
      return Number(stdout)
    }
    const ours = nursery({})
    expect(ours).toBeLessThanOrEqual(2 * 4 * 2 ** 20)
    expect(nursery({ NODE_OPTIONS: '--max-semi-space-size=64' })).toBeGreaterThan(ours)
  })
})

describe('another malloc', () => {
  /** A malloc of its own that comes with glibc. */
  const other = ['/lib/x86_64-linux-gnu', '/lib/aarch64-linux-gnu', '/lib64', '/usr/lib']
    .map((folder) => `${folder}/libc_malloc_debug.so.0`)
    .find((file) => existsSync(file))

  it('ignores its settings, and nothing breaks', () => {
    const script = `const kept = Array.from({ length: 200 }, () => Buffer.alloc(1 << 18, 1))
      const maps = process.platform === 'linux' ? fs.readFileSync('/proc/self/maps', 'utf8') : ''
      console.log(kept.length, maps.includes('libc_malloc_debug'))`
    const env = { ...memorySettings({}), ...(other !== undefined && { LD_PRELOAD: other }) }
    const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8' })
    expect({ stdout, stderr, status }).toEqual({ stdout: `200 ${other !== undefined}\n`, stderr: '', status: 0 })
  })
})

describe('nonsense in the settings', () => {
  it.each(['--nonsense', '--max-semi-space-size=banana'])('%s: the process ends and Node names it', (options) => {
    const { status, stderr } = spawnSync(process.execPath, ['-e', '0'], {
      env: memorySettings({ NODE_OPTIONS: options }),
      encoding: 'utf8',
    })
    expect(status).not.toBe(0)
    expect(stderr).toContain(options)
  })

  it('is named where Node and malloc say nothing', () => {
    expect(memorySettingProblems({ NODE_OPTIONS: 'semi=4 --trace-warnings', MALLOC_ARENA_MAX: 'one' })).toEqual([
      'NODE_OPTIONS: "semi=4" is not an option and has no effect: options start with a dash',
      'MALLOC_ARENA_MAX: "one" is not a number and has no effect',
    ])
  })

  it.each([
    '',
    '--max-semi-space-size=4',
    '--require ./hook.js',
    '--require "./my hook.js" --trace-warnings',
    '--require="./my hook.js"',
    '-r ./a.js',
  ])('%j is no nonsense', (options) => expect(memorySettingProblems({ NODE_OPTIONS: options, MALLOC_TRIM_THRESHOLD_: '0' })).toEqual([]))
})
