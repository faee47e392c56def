package adopt_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// guardOrders captures the changes of the orders, as a guard does.
func guardOrders(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	run(t, pool, `
CREATE FUNCTION public.capture() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rea.events (aggregate_type, aggregate_id, event_type, payload, context_id)
    VALUES ('order', coalesce(NEW.id, OLD.id)::text, 'Direct' || initcap(TG_OP), CASE TG_OP
        WHEN 'INSERT' THEN jsonb_build_object('new', to_jsonb(NEW) || jsonb_build_object('notes', NEW.notes::text))
        WHEN 'DELETE' THEN jsonb_build_object('old', to_jsonb(OLD) || jsonb_build_object('notes', OLD.notes::text))
        ELSE jsonb_build_object('old', to_jsonb(OLD) || jsonb_build_object('notes', OLD.notes::text),
                                'new', to_jsonb(NEW) || jsonb_build_object('notes', NEW.notes::text)) END, 0);
    RETURN NULL;
END
$$`, `CREATE TRIGGER capture AFTER INSERT OR UPDATE OR DELETE ON public.orders FOR EACH ROW EXECUTE FUNCTION public.capture()`)
}

// refusingSQL says that the orders are guarded in refuse mode, without the triggers.
const refusingSQL = `
INSERT INTO rea.guards (relation, aggregate_type, mode, key, columns) VALUES ('public.orders', 'order', 'refuse', '{1}', '[]')`
