import type { ProgramSet } from './programs/programs.ts'

/** The origin of API server and controllers: Kubernetes, or our own (packages/cluster). */
export type Plane = 'kubernetes' | 'embedded'

/** Access of a test to an API server. Plain data: it crosses from vitest's main process to its workers. */
export interface ClusterAccess {
  readonly plane: Plane
  /** The running parts: the API server alone, with controllers and scheduler, or with a node too. */
  readonly form: ProgramSet
  /** https://127.0.0.1:PORT, of a node another address of this machine. */
  readonly url: string
  readonly caPem: string
  /** Of group system:masters: every right. */
  readonly adminToken: string
  readonly kubeconfigPath: string
  readonly kubectlPath: string
  /** As the server itself says, for example v1.34.1; ours adds +thv. */
  readonly version: string
}

/** Of a server only what its clients need. */
export function accessOf({ plane, form, url, caPem, adminToken, kubeconfigPath, kubectlPath, version }: ClusterAccess): ClusterAccess {
  return { plane, form, url, caPem, adminToken, kubeconfigPath, kubectlPath, version }
}
