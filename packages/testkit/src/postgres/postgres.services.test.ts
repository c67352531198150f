import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { processStart } from '@thv/programs/process-identity'
import { expect, test, vi } from 'vitest'
import { runCommand } from '../cluster/process/run-command.ts'
import { describePostgres } from './describe-postgres.ts'
import { startPostgres } from './postgres.ts'

describePostgres('PostgreSQL of the tests', () => {
  test('data survive a restart and a crash', async () => {
    await using server = await startPostgres({ fsync: true })
    const database = await server.createDatabase()
    await database.sql('CREATE TABLE t (n int)')
    const crash = async () => {
      await server.kill()
      await server.start()
    }
    for (const [n, act] of [server.restart, crash].entries()) {
      await database.sql(`INSERT INTO t VALUES (${n})`)
      await act()
    }
    expect(await database.sql('SELECT n FROM t ORDER BY n')).toBe('0\n1')
  })

  test('after SIGKILL of its owner neither a process nor the folder is left', async () => {
    const owner = spawn(process.execPath, ['--input-type=module', '-e', ownerScript], {
      env: { ...process.env, MODULE: fileURLToPath(new URL('./postgres.ts', import.meta.url)) },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const lines = createInterface({ input: owner.stdout })
    const { pids, folder, segment } = JSON.parse(await new Promise<string>((resolve) => lines.once('line', resolve)))
    expect(pids.length).toBeGreaterThan(3)
    owner.kill('SIGKILL')
    await vi.waitFor(() => expect(pids.map(processStart).filter(Boolean)).toEqual([]), 20_000)
    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), 20_000)
    // 56 bytes that PostgreSQL leaves when it is killed and never started again.
    await runCommand('ipcrm', ['-m', segment])
  })
})

const ownerScript = `
  import { readFileSync } from 'node:fs'
  const { startPostgres } = await import(process.env.MODULE)
  const { folder } = await startPostgres()
  const lines = readFileSync(folder + '/data/postmaster.pid', 'utf8').split('\\n')
  const pid = lines[0]
  const segment = lines[6].trim().split(/ +/)[1]
  const children = readFileSync('/proc/' + pid + '/task/' + pid + '/children', 'utf8').split(' ').filter(Boolean)
  console.log(JSON.stringify({ folder, segment, pids: [pid, ...children].map(Number) }))
  setInterval(() => {}, 1000)
`
