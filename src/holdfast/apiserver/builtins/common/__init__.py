"""What the families of kinds share: declaring a kind, checks of fields, columns of tables, cron schedules."""
