import { describe, inject } from 'vitest'
import type { ClusterAccess } from '../cluster-access.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Absent when this machine can run no node. */
    thvNode: NodeAccess
  }
}

/** Access of a test to the one node of its vitest run. Plain data. */
export interface NodeAccess extends ClusterAccess {
  readonly nodeName: string
  /** The host, as pods see it: a server of a test that they shall reach listens here. */
  readonly hostAddress: string
  readonly initPid: number
  /** Names of the images that are on the node. */
  readonly images: {
    /** All programs of the project, see scripts/image.ts. */
    readonly apps: string
    /** See image/fixture-image.ts. */
    readonly fixture: string
  }
}

/** The cluster with a real node; files share it, so each works in namespaces of its own. */
export function sharedNode(): NodeAccess {
  const node = inject('thvNode')
  if (!node) throw new Error('no node in this run: use describeNode in a file *.node.test.ts')
  return node
}

/** `describe`, or skipped where no node can run (never in CI: there the run fails before). */
export function describeNode(name: string, fn: () => void): void {
  if (inject('thvNode')) describe(name, fn)
  else describe.skip(name, fn)
}
