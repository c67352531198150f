import { Environment } from '@marcbachmann/cel-js'
import { addresses } from './library/addresses.ts'
import { celEqual } from './library/cel-equality.ts'
import { conversions } from './library/conversions.ts'
import { install } from './library/define.ts'
import { lists } from './library/lists.ts'
import { quantities } from './library/quantities.ts'
import { regex } from './library/regex.ts'
import { strings } from './library/strings.ts'
import { urls } from './library/urls.ts'

const LIMITS = { maxAstNodes: 20_000, maxDepth: 200, maxListElements: 5000, maxMapEntries: 5000, maxCallArguments: 64 }

export interface CelEnvironment {
  /** A copy for one schema. */
  forSchema(): Environment
  /** Names of functions whose calls must be led to our own. */
  readonly libraryNames: ReadonlySet<string>
}

/** CEL as Kubernetes has it. Built once, when the first rule is met. */
export function celEnvironment(): CelEnvironment {
  built ??= build()
  return built
}

let built: CelEnvironment | undefined

function build(): CelEnvironment {
  const base = new Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: true, limits: LIMITS })
  const libraryNames = install(base, [conversions, strings, lists, regex, urls, quantities, addresses])
  for (const type of ['kubernetes.Quantity', 'kubernetes.URL', 'net.IP', 'net.CIDR']) base.registerOperator(`${type} == ${type}`, celEqual)
  return { forSchema: () => base.clone({ enableOptionalTypes: true }), libraryNames }
}
