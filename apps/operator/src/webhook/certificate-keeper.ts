import { createBackoff } from '@thv/kernel/backoff'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { isAlreadyExists, isConflict, type KubeClient, type KubeObject, type ResourceType, type Secret, secrets } from '@thv/kube'
import type { Logger } from '@thv/telemetry/log'
import { dueCertificates, readSecretData, secretData, trustedAuthorities, type WebhookCertificates } from './webhook-certificates.ts'

export interface CertificateKeeperOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly log: Logger
  readonly secret: { readonly namespace: string; readonly name: string }
  /** The ValidatingWebhookConfiguration whose `caBundle` the leader keeps. */
  readonly configuration: string
  readonly hosts: readonly string[]
  readonly isLeader: () => boolean
  /** Called with the first certificate and with each other one. */
  readonly onServing: (certificate: WebhookCertificates['serving']) => Promise<void>
}

interface WebhookConfiguration extends KubeObject {
  webhooks?: { name: string; clientConfig?: { caBundle?: string } }[]
}

const webhookConfigurations: ResourceType<WebhookConfiguration> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
}

const LOOK_MS = 60_000
/** Until there is a certificate: the leader is about to make it. */
const FIRST_LOOK_MS = 1_000

/**
 * Keeps the webhook's certificate until the signal aborts: the leader makes and renews it and tells the API server whom to trust; the
 * others read it. The Secret is looked at every minute, which is often for certificates that live for months.
 */
export async function keepCertificates(options: CertificateKeeperOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, onServing } = options
  const failures = createBackoff({ baseMs: FIRST_LOOK_MS, maxMs: LOOK_MS })
  const pause = createBackoff({ baseMs: LOOK_MS, maxMs: LOOK_MS, jitter: 0.2 })
  let shown: string | undefined
  while (!signal.aborted) {
    let wait = FIRST_LOOK_MS
    try {
      const certificates = await settled(options, signal)
      if (certificates !== undefined) {
        const { serving } = certificates
        if (serving.certPem !== shown) await onServing(serving)
        shown = serving.certPem
        wait = pause.next()
      }
      failures.reset()
    } catch (error) {
      if (signal.aborted) return
      wait = failures.next()
      log.warn('the certificate of the webhook could not be kept; retrying', { error: errorMessage(error) })
    }
    await clock.sleep(wait, signal).catch(() => {})
  }
}

async function settled(options: CertificateKeeperOptions, signal: AbortSignal): Promise<WebhookCertificates | undefined> {
  const { client, secret, clock, hosts } = options
  const live = await client.tryGet(secrets, secret, { signal })
  const current = readSecretData(live?.data)
  if (!options.isLeader()) return current
  const due = dueCertificates(current, { hosts, now: clock.now() })
  if (due !== current && !(await written(options, live, due, signal))) return undefined
  await trust(options, Buffer.from(trustedAuthorities(due)).toString('base64'), signal)
  return due
}

/** False when somebody else was faster: what they wrote is read at the next look. */
async function written(
  { client, secret, log }: CertificateKeeperOptions,
  live: Secret | undefined,
  due: WebhookCertificates,
  signal: AbortSignal,
): Promise<boolean> {
  const data = secretData(due)
  try {
    if (live === undefined) await client.create(secrets, { metadata: secret, type: 'kubernetes.io/tls', data } as Secret, { signal })
    else await client.update(secrets, { ...live, data }, { signal })
    log.info('the certificate of the webhook is renewed', { secret: secret.name })
    return true
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error)) return false
    throw error
  }
}

/** Does nothing without the configuration: the API server then does not call the webhook. */
async function trust({ client, configuration: name }: CertificateKeeperOptions, caBundle: string, signal: AbortSignal): Promise<void> {
  const live = await client.tryGet(webhookConfigurations, { name }, { signal })
  const stale = (live?.webhooks ?? []).filter(({ clientConfig }) => clientConfig?.caBundle !== caBundle)
  if (stale.length === 0) return
  const webhooks = stale.map((webhook) => ({ name: webhook.name, clientConfig: { caBundle } }))
  await client.patch(webhookConfigurations, { name }, { kind: 'strategic', body: { webhooks } }, { signal })
}
