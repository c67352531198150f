import { compact, type Normalised, type ProblemList, problemList, unify } from '../../schema/normalize.ts'
import { type CanonicalCABundleRef, normaliseCaBundleRef } from '../../shared/ca-bundle-ref.ts'
import { type CanonicalHeaderForward, normaliseHeaderForward } from '../../shared/header-forward.ts'
import { type CanonicalProxySettings, normaliseProxySettings } from '../../shared/proxy-settings.ts'
import { reportUnsupportedRefs } from '../../shared/workload-fields.ts'
import type { MCPRemoteProxy } from './schema.ts'

type Spec = MCPRemoteProxy['spec']

export interface CanonicalMCPRemoteProxySpec extends CanonicalProxySettings {
  /** Empty, with a problem, when neither spelling is set. */
  remoteUrl: string
  allowPrivateEndpoint: boolean
  transport: NonNullable<Spec['transport']>
  caBundleRef?: CanonicalCABundleRef
  headerForward: CanonicalHeaderForward
}

export function normaliseMcpRemoteProxy({ spec }: Pick<MCPRemoteProxy, 'spec'>): Normalised<CanonicalMCPRemoteProxySpec> {
  const problems = problemList()
  const headerForward = normaliseHeaderForward(problems, 'spec.headerForward', spec.headerForward)
  if (spec.externalAuthConfigRef) reportAuthorizationHeader(problems, headerForward)
  const remoteUrl = unify(problems, { 'spec.remoteUrl': spec.remoteUrl, 'spec.remoteURL': spec.remoteURL })
  if (!remoteUrl) problems.add('spec.remoteUrl', 'missing', 'spec.remoteUrl must be set')
  reportUnsupportedRefs(problems, spec)
  const canonical = compact({
    remoteUrl: remoteUrl ?? '',
    allowPrivateEndpoint: spec.allowPrivateEndpoint ?? false,
    transport: spec.transport ?? 'streamable-http',
    caBundleRef: normaliseCaBundleRef(problems, 'spec.caBundleRef', spec.caBundleRef),
    headerForward,
    ...normaliseProxySettings(problems, spec),
  })
  return { spec: canonical, problems: problems.all }
}

/** Admission refuses this too; the object may be older than its rule. */
function reportAuthorizationHeader(problems: ProblemList, forward: CanonicalHeaderForward): void {
  const names = [...Object.keys(forward.addPlaintextHeaders), ...forward.addHeadersFromSecret.map((header) => header.headerName)]
  if (!names.some((name) => name.toLowerCase() === 'authorization')) return
  problems.add(
    'spec.headerForward',
    'forbidden',
    'spec.headerForward must not set Authorization beside spec.externalAuthConfigRef: remove the header',
  )
}
