import { int32, opt, str } from '../schema/nodes.ts'
import { conditions, observedGeneration } from '../schema/status-nodes.ts'

/** Status fields of a workload that runs behind a proxy. The hashes are those of the objects that the workload was last built from. */
export const workloadStatus = () => ({
  message: opt(str('Explanation of the phase, with what to do next.')),
  url: opt(str('URL of the workload inside the cluster.')),
  group: opt(str('Name of the MCPGroup that it belongs to.')),
  replicas: opt(int32('Number of proxy pods.')),
  selector: opt(str('Label selector of the proxy pods, for autoscalers.')),
  observedGeneration: opt(observedGeneration()),
  toolConfigHash: opt(hash('MCPToolConfig')),
  externalAuthConfigHash: opt(hash('MCPExternalAuthConfig')),
  authServerConfigHash: opt(hash('object named by authServerRef')),
  oidcConfigHash: opt(hash('OIDC settings')),
  authzConfigHash: opt(hash('policies')),
  telemetryConfigHash: opt(unused()),
  webhookConfigHash: opt(unused()),
  conditions: opt(conditions()),
})

/** Dumps of other versions carry these; a strict apply of such a dump must not fail. */
const unused = () => str('Not written; accepted so that exported objects can be applied.')

const hash = (what: string) => str(`Hash of the ${what} in use.`)
