import type { Clock } from '@thv/kernel/clock'
import type { Logger } from '@thv/telemetry/log'
import type { HttpConfig } from '../../config/registry-config.ts'
import type { RegistryEngine } from '../../engine/engine.ts'
import type { PageAnswers } from '../pages/page-answers.ts'
import type { Access } from './access-port.ts'
import type { Route } from './route.ts'

/** Shared by all handlers. */
export interface ApiContext {
  readonly engine: RegistryEngine
  readonly access: Access
  readonly http: HttpConfig
  /** Of `sync`: where files of sources made here may lie. */
  readonly allowedFolders: readonly string[]
  readonly version: VersionInfo
  readonly log: Logger
  readonly clock: Clock
  readonly pages: PageAnswers
  /** For the documents that describe them. */
  readonly routes: readonly Route[]
}

/** As `/version` shows it. */
export interface VersionInfo {
  readonly version: string
  readonly commit: string
  readonly buildDate: string
}
