import { compact, type Normalised, problemList, readNameRef, unify } from '../../schema/normalize.ts'
import { type CanonicalCABundleRef, normaliseCaBundleRef } from '../../shared/ca-bundle-ref.ts'
import { type CanonicalHeaderForward, normaliseHeaderForward } from '../../shared/header-forward.ts'
import type { MCPServerEntry } from './schema.ts'

export interface CanonicalMCPServerEntrySpec {
  /** Absent only together with a problem, as is `groupRef`. */
  remoteUrl?: string
  transport: MCPServerEntry['spec']['transport']
  groupRef?: { name: string }
  externalAuthConfigRef?: { name: string }
  headerForward: CanonicalHeaderForward
  caBundleRef?: CanonicalCABundleRef
  insecureAllowHTTP: boolean
  allowPrivateEndpoint: boolean
}

export function normaliseMcpServerEntry({ spec }: Pick<MCPServerEntry, 'spec'>): Normalised<CanonicalMCPServerEntrySpec> {
  const problems = problemList()
  const remoteUrl = unify(problems, { 'spec.remoteUrl': spec.remoteUrl, 'spec.remoteURL': spec.remoteURL })
  if (remoteUrl === undefined) problems.add('spec.remoteUrl', 'missing', 'spec.remoteUrl must be the URL of the remote server')
  if (spec.groupRef === undefined || spec.groupRef === null) {
    problems.add('spec.groupRef', 'missing', 'spec.groupRef must name the MCPGroup that the entry belongs to')
  }
  return {
    spec: compact({
      remoteUrl,
      transport: spec.transport,
      groupRef: readNameRef(problems, 'spec.groupRef', spec.groupRef),
      externalAuthConfigRef: spec.externalAuthConfigRef,
      headerForward: normaliseHeaderForward(problems, 'spec.headerForward', spec.headerForward),
      caBundleRef: normaliseCaBundleRef(problems, 'spec.caBundleRef', spec.caBundleRef),
      insecureAllowHTTP: spec.insecureAllowHTTP ?? false,
      allowPrivateEndpoint: spec.allowPrivateEndpoint ?? false,
    }),
    problems: problems.all,
  }
}
