import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { processStart } from '@thv/programs/process-identity'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { isCi } from '../global-setup.ts'
import { guardedFolderPrefix } from '../process/process-guard.ts'
import { runCommand } from '../process/run-command.ts'
import type { NodeCluster } from './node.ts'
import { nodeProblem } from './node-packages.ts'
import { controlGroupFolders, nodeNetwork, nodeSettings } from './node-place.ts'

const canRun = isCi(process.env) || nodeProblem() === undefined

/* Here and not among the tests on a node: those share one that lives, and a machine has only one. */
describe.runIf(canRun)('a node', () => {
  test('leaves nothing behind when its process is killed', async () => {
    const before = machine()
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void owner.kill('SIGKILL'))
    const line = await new Promise<string>((resolve, reject) => {
      createInterface({ input: owner.stdout }).once('line', resolve)
      owner.once('close', (code) => reject(new Error(`the node was not started (${code})`)))
    })
    const { pids, initPid, kubeconfigPath } = JSON.parse(line) as Pick<NodeCluster, 'pids' | 'initPid' | 'kubeconfigPath'>
    const living = () => [...pids, initPid].filter((pid) => processStart(pid) !== undefined)
    expect(living()).toHaveLength(pids.length + 1)
    expect(machine()).not.toEqual(before)

    owner.kill('SIGKILL')
    await vi.waitFor(() => expect(living()).toEqual([]), { timeout: 30_000, interval: 100 })
    await vi.waitFor(async () => expect(await runCommand('ip', ['route'])).not.toContain(nodeNetwork.node), {
      timeout: 30_000,
      interval: 100,
    })
    expect(machine()).toEqual(before)
    expect(existsSync(dirname(kubeconfigPath))).toBe(false)
  })
})

const script = `
  const { startNode } = await import(${JSON.stringify(fileURLToPath(new URL('./node.ts', import.meta.url)))})
  const { pids, initPid, kubeconfigPath } = await startNode()
  console.log(JSON.stringify({ pids, initPid, kubeconfigPath }))
  setInterval(() => {}, 1000)`

/** All that a node changes outside of its namespaces, processes and routes apart. */
function machine() {
  return {
    settings: nodeSettings.map((name) => `${name}: ${readFileSync(`/proc/sys/${name}`, 'utf8')}`),
    groups: controlGroupFolders().filter((folder) => existsSync(folder)),
    folders: readdirSync(tmpdir()).filter((name) => name.startsWith(`${guardedFolderPrefix}node-`)),
  }
}
