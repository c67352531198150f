import { bindingRows } from './binding-rows.ts'
import { clientRows } from './client-rows.ts'
import { clusterRows } from './cluster-rows.ts'
import { customRows } from './custom-rows.ts'
import { objectRows } from './object-rows.ts'
import { optionRows } from './option-rows.ts'
import type { ParityRow } from './parity-row.ts'
import { patchRows } from './patch-rows.ts'
import { plainRows } from './plain-rows.ts'
import { podRows } from './pod-rows.ts'
import { policyRows } from './policy-rows.ts'
import { revisionRows } from './revision-rows.ts'
import { serviceRows } from './service-rows.ts'
import { subresourceRows } from './subresource-rows.ts'
import { typeRows } from './type-rows.ts'
import { watchRows } from './watch-rows.ts'
import { workloadRows } from './workload-rows.ts'

/** By the name of the file that holds their answers: `services` is in `services.golden.json`. */
export const rowSets: Readonly<Record<string, readonly ParityRow[]>> = {
  parity: [...objectRows, ...customRows, ...clusterRows, ...patchRows, ...typeRows, ...watchRows],
  services: serviceRows,
  policies: policyRows,
  plain: plainRows,
  bindings: bindingRows,
  pods: podRows,
  workloads: workloadRows,
  subresources: subresourceRows,
  revisions: revisionRows,
  options: optionRows,
  clients: clientRows,
}
