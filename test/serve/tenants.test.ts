import { tenantLaws } from "./tenants.ts";

tenantLaws("on files", async () => ({}));
