import { type CaBundle, parseCaBundle as parseBundle } from '@thv/http/outbound/ca-bundle'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import type { ConditionUpdate } from '@thv/kube'
import type { CanonicalCABundleRef } from '@thv/resources/shared/ca-bundle-ref'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { Blocker } from '../../deployment/contribution.ts'
import type { Lookup } from '../../references/lookup.ts'
import { type Contribution, contributes, nothing, type Resolved } from '../contribution.ts'

export interface CaBundleVerdict {
  readonly certificates: number
  /** Why it cannot be used. */
  readonly problem?: string
  /** Certificates that have run out: they do no harm, but nothing is trusted because of them. */
  readonly warnings: readonly string[]
}

/** Every certificate is really parsed. Texts never quote the content. */
export function parseCaBundle(pem: string, now: number = Date.now()): CaBundleVerdict {
  const { bundle, problem } = parse(pem, now)
  if (bundle === undefined) return { certificates: 0, problem, warnings: [] }
  return { certificates: bundle.certificates.length, warnings: warningsOf(bundle) }
}

function warningsOf({ expired }: CaBundle): string[] {
  return expired.map((subject) => `the certificate of ${subject} has expired: replace it`)
}

type Parsed = { bundle: CaBundle; problem?: never } | { bundle?: never; problem: string }

function parse(pem: string, now: number): Parsed {
  try {
    return { bundle: parseBundle(pem, { name: '', now }) }
  } catch (error) {
    if (!isThvError(error, 'ca_bundle_invalid')) throw error
    return { problem: errorMessage(error).replace(/^CA bundle : /, '') }
  }
}

export interface MountCaBundleArgs {
  readonly ref: CanonicalCABundleRef
  /** For messages. */
  readonly field: string
  readonly volumeName: string
  /** Where it is mounted in the proxy container. */
  readonly folder: string
  readonly lookup: Pick<Lookup, 'configMap'>
  readonly now?: number | undefined
}

export type MountedCaBundle =
  | { readonly ok: true; readonly file?: MountedFile; readonly condition: ConditionUpdate }
  | { readonly ok: false; readonly blocker: Blocker }

export interface MountedFile extends Required<Pick<Contribution, 'volumes' | 'volumeMounts'>> {
  readonly path: string
  /** Changes when the certificates do. The proxy reads them once, so its pods have to be replaced then. */
  readonly id: string
}

/** A bundle that is missing or broken blocks: the proxy would not come up, or would trust no server. Absent and optional: no file. */
export function mountCaBundle({ ref, field, volumeName, folder, lookup, now }: MountCaBundleArgs): MountedCaBundle {
  const { name, key, optional } = ref.configMapRef
  const what = `key ${key} of ConfigMap ${name}`
  const pem = lookup.configMap(name)?.data[key]
  if (pem === undefined) {
    if (optional)
      return {
        ok: true,
        condition: valid(`${field}: there is no ${what}, which is allowed: only the authorities of the system are trusted`),
      }
    return blocks(
      WorkloadReason.CABundleRefNotFound,
      `${field} names ${what}, which does not exist: create it with the certificates in PEM form`,
    )
  }
  if (volumeName.length > MAX_VOLUME_NAME) {
    const limit = MAX_VOLUME_NAME - (volumeName.length - name.length)
    return blocks(
      WorkloadReason.CABundleRefInvalid,
      `${field}: the name of ConfigMap ${name} is longer than ${limit} characters: use a shorter one`,
    )
  }
  const { bundle, problem } = parse(pem, now ?? Date.now())
  if (bundle === undefined) return blocks(WorkloadReason.CABundleRefInvalid, `${field}: ${what} is not a CA bundle: ${problem}`)
  const count = bundle.certificates.length
  const volume = volumeName.replaceAll('.', '-')
  return {
    ok: true,
    condition: valid([`${field}: ${what} holds ${count} certificate${count === 1 ? '' : 's'}`, ...warningsOf(bundle)].join('; ')),
    file: {
      path: `${folder}/${key}`,
      id: bundle.id,
      volumes: [{ name: volume, configMap: { name, items: [{ key, path: key }] } }],
      volumeMounts: [{ name: volume, mountPath: folder, readOnly: true }],
    },
  }
}

const MAX_VOLUME_NAME = 63

export const REMOTE_CA_FOLDER = '/etc/toolhive/remote-ca'
/** Read by no program: its change replaces the pods. */
export const REMOTE_CA_VARIABLE = 'THV_REMOTE_CA_HASH'

/** Of MCPRemoteProxy: whom to trust besides the authorities of the system when the remote server is called. */
export function resolveRemoteCaBundle(args: {
  caBundleRef: CanonicalCABundleRef | undefined
  lookup: Pick<Lookup, 'configMap'>
  now?: number
}): Resolved {
  const { caBundleRef: ref, lookup, now } = args
  if (ref === undefined) return nothing
  const mounted = mountCaBundle({ ref, field: 'spec.caBundleRef', volumeName: 'remote-ca', folder: REMOTE_CA_FOLDER, lookup, now })
  if (!mounted.ok) return { ok: false, blockers: [mounted.blocker] }
  const { file, condition } = mounted
  if (file === undefined) return contributes({ conditions: [condition] })
  const { path, id, volumes, volumeMounts } = file
  return contributes({
    runConfig: { remote_ca_bundle_path: path },
    env: [{ name: REMOTE_CA_VARIABLE, value: id }],
    volumes,
    volumeMounts,
    conditions: [condition],
  })
}

function valid(message: string): ConditionUpdate {
  return { type: WorkloadCondition.CABundleRefValidated, status: 'True', reason: WorkloadReason.CABundleRefValid, message }
}

function blocks(reason: string, message: string): MountedCaBundle {
  return { ok: false, blocker: { condition: WorkloadCondition.CABundleRefValidated, reason, message } }
}
