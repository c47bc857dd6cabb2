import type { FeatureApi } from '../feature.ts';
import type { AuditSource } from './routes/audit-exports.ts';
import { exportAudit } from './routes/export-audit.get.ts';

export const auditApi: FeatureApi<AuditSource> = {
  open: ({ records, findSigner }) => ({ records, findSigner }),
  routes: (server, api, audit) => exportAudit(server, { ...api, audit }),
};
