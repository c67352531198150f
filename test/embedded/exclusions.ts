import type { ExclusionList } from './exclusion-table.ts'

/** Tests that declare a need which the embedded control plane does not offer yet. A run that differs from this list fails. */
export const EXCLUSIONS: ExclusionList = {
  'apps/operator/src/controllers/mcp-group/mcp-group.cluster.test.ts': {
    'a team with rights on mcpserverentries alone adds a backend to a group, and can change nothing else [004-056]': 'rbac',
    'is Failed while the operator may not list its members, and Ready once it may [002-120]': 'rbac',
  },
  'apps/operator/src/controllers/mcp-server/mcp-server-status.cluster.test.ts': {
    'says why no pod can be made': 'resource-quotas',
  },
  'apps/operator/src/operator-process.cluster.test.ts': {
    'without the rights it needs it is alive, not ready, says why, and still ends when told to': 'rbac',
  },
  'apps/proxyrunner/src/runtime/kubernetes/pod-replacement.cluster.test.ts': {
    'stays where it has not, and the log says what to do': 'rbac',
  },
  'apps/registry/src/kubernetes/kubernetes-source.cluster.test.ts': {
    'fails a sync that may not list a namespace, and keeps the entries [001-064]': 'rbac',
  },
  'test/deploy/registry-chart.cluster.test.ts': {
    'reads the cluster with the rights and the configuration of the chart, polling': 'rbac',
    'reads the cluster with the rights and the configuration of the chart, watching': 'rbac',
  },
  'test/export/export-faults.cluster.test.ts': {
    'all namespaces are exported with the rights of the chart, and with no verb less': 'rbac',
  },
  'packages/kube/src/client/client.cluster.test.ts': {
    'is refused what its account may not do': 'rbac',
    'shows a client certificate': 'client-certificates',
  },
  'packages/kube/src/config/exec-credential.cluster.test.ts': {
    'a client certificate': 'client-certificates',
  },
  'packages/kube/src/streams/streams.cluster.test.ts': {
    'a container that it does not have': 'exec',
    'an account without rights': 'rbac',
  },
}
