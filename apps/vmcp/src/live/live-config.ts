import { createHash } from 'node:crypto'
import { jsonEqual } from '@thv/kernel/json'
import { RESTART_FIELDS } from '@thv/vmcpconfig/restart-part'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { parseVmcpConfig } from '../config/load-vmcp-config.ts'

/** State of the configuration, for `/status` and metrics. Holds no value of the file. */
export interface ConfigState {
  /** Of the text in force. */
  readonly hash: string
  readonly loadedAt: string
  /** Why a newer text is not in force; undefined when the newest one is. */
  readonly problem: string | undefined
  /** Fields that have changed and need another start. */
  readonly needsRestart: readonly string[]
}

/** The configuration in force. A text that is wrong changes nothing but the state. */
export class LiveConfig {
  readonly #started: VmcpConfig
  readonly #adjust: (config: VmcpConfig) => VmcpConfig
  #current: VmcpConfig
  #text: string | undefined
  #state: ConfigState

  /** `adjust` adds settings of the command line to a configuration. */
  constructor(config: VmcpConfig, text?: string, adjust = (given: VmcpConfig) => given) {
    this.#adjust = adjust
    this.#started = config
    this.#current = config
    this.#text = text
    this.#state = { hash: hashOf(text ?? ''), loadedAt: new Date().toISOString(), problem: undefined, needsRestart: [] }
  }

  get current(): VmcpConfig {
    return this.#current
  }

  get state(): ConfigState {
    return this.#state
  }

  /** Undefined: it is the text that is known already. Else whether it is in force now. */
  offer(text: string, source: string): boolean | undefined {
    if (text === this.#text) return undefined
    this.#text = text
    try {
      this.#accept(withFixedParts(this.#adjust(parseVmcpConfig(text, source)), this.#started), text)
      return true
    } catch (error) {
      this.reject(error instanceof Error ? error.message : String(error))
      this.#text = text
      return false
    }
  }

  /** The newest configuration cannot be applied: `previous` stays in force. */
  reject(problem: string, previous: VmcpConfig = this.#current): void {
    this.#current = previous
    this.#text = undefined // the same text may work later
    this.#state = { ...this.#state, problem }
  }

  #accept({ config, needsRestart }: Fixed, text: string): void {
    this.#current = config
    this.#state = { hash: hashOf(text), loadedAt: new Date().toISOString(), problem: undefined, needsRestart }
  }
}

interface Fixed {
  readonly config: VmcpConfig
  readonly needsRestart: readonly string[]
}

/** Policies may change while the server runs, the way in which clients authenticate may not. */
function withFixedParts(config: VmcpConfig, started: VmcpConfig): Fixed {
  const needsRestart: string[] = RESTART_FIELDS.filter((field) => !jsonEqual(config[field], started[field]))
  const { authz } = config.incomingAuth
  const isOther = !jsonEqual({ ...config.incomingAuth, authz: undefined }, { ...started.incomingAuth, authz: undefined })
  const { authz: before } = started.incomingAuth
  const hadPolicies = before?.type === 'cedar'
  // Policies are written for the claims of one provider, and callers are authenticated with those of the start.
  const isSameKind = hadPolicies === (authz?.type === 'cedar') && before?.primaryUpstreamProvider === authz?.primaryUpstreamProvider
  if (isOther || !isSameKind) needsRestart.push('incomingAuth')
  if (config.outgoingAuth.source !== started.outgoingAuth.source) needsRestart.push('outgoingAuth.source')
  const { incomingAuth, outgoingAuth } = started
  return {
    needsRestart,
    config: {
      ...config,
      ...(Object.fromEntries(RESTART_FIELDS.map((field) => [field, started[field]])) as Pick<VmcpConfig, (typeof RESTART_FIELDS)[number]>),
      incomingAuth: { ...incomingAuth, ...(hadPolicies && isSameKind && { authz }) },
      outgoingAuth: { ...config.outgoingAuth, source: outgoingAuth.source },
    },
  }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
