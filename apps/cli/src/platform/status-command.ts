import { join } from 'node:path'
import { ThvError } from '@thv/kernel/errors'
import { KUBECONFIG_FILE, withCluster } from '../cluster/open-cluster.ts'
import { type PlatformFlags, platformFolder } from '../local-platform/platform-folder.ts'
import { findRunning } from '../local-platform/running-platform.ts'
import { ageText } from '../objects/age-text.ts'
import { alignedRows } from '../objects/print-table.ts'
import type { ProgramEnv } from '../program.ts'
import { registryState } from '../registry/registry-state.ts'
import { readStates } from './wait-for-servers.ts'

/** thv status: the platform, its operator and its servers. Fails where no platform runs. */
export async function runStatus(options: PlatformFlags, env: ProgramEnv): Promise<void> {
  const folder = platformFolder(options, env)
  const running = findRunning(folder)
  if (running === undefined) throw new ThvError('platform_stopped', `no platform is running in ${folder}; start it with "thv up"`)
  const [[operator, ...servers], registry] = await withCluster(
    { dataDir: folder },
    env,
    async ({ client }) => await Promise.all([readStates(client, env.signal), registryState(client, env.signal)]),
  )
  const facts = [
    ['platform', `running for ${ageText(Date.now() - Date.parse(running.since))}, process ${running.pid}, API server ${running.url}`],
    ['operator', `${operator?.state ?? ''} ${operator?.detail ?? ''}`.trim()],
    ...(registry === undefined ? [] : [['registry', `${registry.state} ${registry.url ?? registry.detail}`.trim()]]),
    ['kubeconfig', join(folder, KUBECONFIG_FILE)],
  ]
  env.out(`${alignedRows(facts).join('\n')}\n\n`)
  if (servers.length === 0) {
    env.out('No servers yet: declare one with "thv apply -f FILE".\n')
    return
  }
  const rows = servers.map(({ name, state, url = '', detail }) => [name, state, url === '' ? detail : url])
  env.out(`${alignedRows([['SERVER', 'STATE', 'URL'], ...rows]).join('\n')}\n`)
}
