import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { reasonToSkip } from './global-setup.ts'
import type { NodeCluster } from './node.ts'
import { nodeProblem } from './node-packages.ts'
import { nodeControlGroup, nodeNetwork, nodeSettings } from './node-place.ts'
import { guardedFolderPrefix } from './process-guard.ts'
import { processStart } from './process-identity.ts'
import { runCommand } from './run-command.ts'

/* Here and not among the tests on a node: those share one that lives, and a machine has only one. */
describe.skipIf(reasonToSkip(process.env, () => ({ kind: nodeProblem() ? 'unavailable' : 'ready', reason: nodeProblem() ?? '' })))(
  'a node',
  () => {
    test('leaves nothing behind when its process is killed', async () => {
      const before = machine()
      const module = fileURLToPath(new URL('./node.ts', import.meta.url))
      const script = `const { startNode } = await import(${JSON.stringify(module)})
      const { pids, initPid, kubeconfigPath } = await startNode()
      console.log(JSON.stringify({ pids, initPid, kubeconfigPath }))
      setInterval(() => {}, 1000)`
      const owner = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
      const line = await new Promise<string>((resolve, reject) => {
        createInterface({ input: owner.stdout }).once('line', resolve)
        owner.once('close', (code) => reject(new Error(`the node was not started (${code})`)))
      })
      const { pids, initPid, kubeconfigPath } = JSON.parse(line) as Pick<NodeCluster, 'pids' | 'initPid' | 'kubeconfigPath'>
      expect([...pids, initPid].map(processStart)).not.toContain(undefined)
      expect(machine()).not.toEqual(before)
      owner.kill('SIGKILL')
      await vi.waitFor(() => expect([...pids, initPid].map(processStart).filter((start) => start !== undefined)).toEqual([]), 30_000)
      await vi.waitFor(async () => expect(await runCommand('ip', ['route'])).not.toContain(nodeNetwork.node), 30_000)
      expect(machine()).toEqual(before)
      expect(existsSync(dirname(kubeconfigPath))).toBe(false)
    }, 180_000)
  },
)

/** All that a node changes outside of its namespaces. */
function machine() {
  const groups = readdirSync('/sys/fs/cgroup', { recursive: true, withFileTypes: true }).filter((entry) => entry.name === nodeControlGroup)
  return {
    settings: nodeSettings.map((name) => `${name}: ${readFileSync(`/proc/sys/${name}`, 'utf8')}`),
    groups: groups.map((entry) => entry.parentPath),
    folders: readdirSync(tmpdir()).filter((name) => name.startsWith(`${guardedFolderPrefix}node-`)),
  }
}
